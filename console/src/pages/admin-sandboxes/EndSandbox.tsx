import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { sandboxesQuery } from '../../api/queries';
import type { LiveSandbox } from '../../api/views';
import { Confirm } from '../../parts/Confirm';

interface Props {
  sandbox: LiveSandbox;
  onClose: () => void;
}

export function EndSandbox({ sandbox, onClose }: Props) {
  const end = useChange(
    () =>
      answer(
        api.DELETE('/api/v1/admin/sandboxes/{sandbox}', {
          params: { path: { sandbox: sandbox.id } },
        }),
      ),
    [sandboxesQuery.queryKey],
  );
  const who = sandbox.user_email ?? 'a service';
  return (
    <Confirm
      isOpen
      title={`End the sandbox of ${who}?`}
      action="End sandbox"
      isBusy={end.isPending}
      error={end.error}
      onClose={onClose}
      onConfirm={() => end.mutate(undefined, { onSuccess: onClose })}
    >
      What runs in it stops at once, and its variables and files are gone. Artifacts that were
      collected stay. It is a sandbox of {sandbox.workspace_name}: <code>{sandbox.id}</code>
    </Confirm>
  );
}
