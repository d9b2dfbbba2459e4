import { PasswordInput, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { sessionQuery, setupQuery } from '../../api/queries';
import { Form } from '../../parts/Form';
import { Gate } from '../../parts/Gate';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Page, Panel } from '../../parts/Page';
import { setupToken } from './token';

export function SetupPage() {
  const setup = useQuery(setupQuery);
  const token = setupToken();
  return (
    <Gate>
      <Page title="Set up Glovebox">
        <Loaded query={setup}>
          {({ needs_setup }) => {
            if (!needs_setup) return <Done />;
            return token === null ? <NoToken /> : <FirstAdmin token={token} />;
          }}
        </Loaded>
      </Page>
    </Gate>
  );
}

const Done = () => (
  <Notice tone="info" title="It is set up already">
    <Link to="/sign-in">Sign in</Link>
  </Notice>
);

const NoToken = () => (
  <Notice tone="warn" title="This address has no set-up token">
    Open the whole link that the server printed when it started. It makes a new one at each start
    while there is no administrator.
  </Notice>
);

function FirstAdmin({ token }: { token: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const setUp = useMutation({
    mutationFn: () => answer(api.POST('/api/v1/setup', { body: { token, email, name, password } })),
    onSuccess: async (session) => {
      queries.setQueryData(sessionQuery.queryKey, session);
      await navigate({ to: '/admin/system/sandbox', replace: true });
    },
  });
  return (
    <Panel title="Make the first administrator">
      <Form
        action="Make administrator"
        change={setUp}
        isDisabled={email === '' || name === '' || password === ''}
        onSubmit={() => setUp.mutate()}
      >
        <TextInput
          label="E-mail"
          description="You sign in with it. No mail is sent."
          type="email"
          autoComplete="username"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <TextInput
          label="Name"
          autoComplete="name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <PasswordInput
          label="Password"
          description="12 characters at least"
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
      </Form>
    </Panel>
  );
}
