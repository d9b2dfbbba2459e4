import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../api/client';
import { drafts } from '../chat/drafts';

export function SignOut() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const signOut = useMutation({
    mutationFn: () => answer(api.DELETE('/api/v1/session')),
    onSuccess: async () => {
      await navigate({ to: '/sign-in' });
      // Nothing of this person stays for the next one at the same browser.
      queries.clear();
      drafts.forget();
    },
  });
  return (
    <Button
      variant="default"
      size="xs"
      loading={signOut.isPending}
      onClick={() => signOut.mutate()}
    >
      Sign out
    </Button>
  );
}
