import { PasswordInput } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { signInsQuery } from '../../api/queries';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { Panel } from '../../parts/Page';

export function Password() {
  const [present, setPresent] = useState('');
  const [next, setNext] = useState('');
  const change = useChange(
    () => answer(api.POST('/api/v1/account/password', { body: { present, new: next } })),
    [signInsQuery.queryKey],
  );
  const submit = () =>
    change.mutate(undefined, {
      onSuccess: () => {
        setPresent('');
        setNext('');
      },
    });
  return (
    <Panel title="Password">
      <Form
        action="Change password"
        change={change}
        done={change.isSuccess ? 'The password is changed. Your other sessions have ended.' : null}
        isDisabled={present === '' || next === ''}
        onSubmit={submit}
      >
        <Fields>
          <PasswordInput
            label="Present password"
            autoComplete="current-password"
            value={present}
            onChange={(event) => setPresent(event.currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description="12 characters at least"
            autoComplete="new-password"
            value={next}
            onChange={(event) => setNext(event.currentTarget.value)}
          />
        </Fields>
      </Form>
    </Panel>
  );
}
