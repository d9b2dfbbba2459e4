import { PasswordInput, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { sessionQuery, setupQuery } from '../../api/queries';
import { Form } from '../../parts/Form';
import { Gate } from '../../parts/Gate';
import { Notice } from '../../parts/Notice';
import { Page, Panel } from '../../parts/Page';

const route = getRouteApi('/sign-in');

export function SignInPage() {
  const { next } = route.useSearch();
  const router = useRouter();
  const queries = useQueryClient();
  const setup = useQuery(setupQuery);
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => answer(api.POST('/api/v1/session', { body: { email, password } })),
    onSuccess: (session) => {
      queries.setQueryData(sessionQuery.queryKey, session);
      router.history.push(next ?? '/');
    },
  });
  return (
    <Gate>
      <Page title="Sign in to Glovebox">
        {setup.data?.needs_setup === true && (
          <Notice tone="info" title="Nobody looks after this installation yet">
            Open the link that the server printed when it started. It makes the first administrator.
          </Notice>
        )}
        <Panel title="Your account">
          <Form
            action="Sign in"
            change={signIn}
            isDisabled={email === '' || password === ''}
            onSubmit={() => signIn.mutate()}
          >
            <TextInput
              label="E-mail"
              type="email"
              autoComplete="username"
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          </Form>
        </Panel>
      </Page>
    </Gate>
  );
}
