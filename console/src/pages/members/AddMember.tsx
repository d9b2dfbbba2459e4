import { NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { membersQuery } from '../../api/queries';
import { type RoleName, roleOf } from '../../api/views';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { Panel } from '../../parts/Page';

interface Props {
  workspace: string;
  /** What the person that is signed in may give. */
  roles: readonly RoleName[];
}

export function AddMember({ workspace, roles }: Props) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<RoleName>('editor');
  const [added, setAdded] = useState<string | null>(null);
  const add = useChange(
    () =>
      answer(
        api.POST('/api/v1/workspaces/{workspace}/members', {
          params: { path: { workspace } },
          body: { email, role },
        }),
      ),
    [membersQuery(workspace).queryKey],
  );
  const submit = () =>
    add.mutate(undefined, {
      onSuccess: () => {
        setAdded(`${email} is a member now.`);
        setEmail('');
      },
    });
  return (
    <Panel title="Add a member">
      <Form
        action="Add member"
        change={add}
        done={add.isError ? null : added}
        isDisabled={email === ''}
        onSubmit={submit}
      >
        <Fields>
          <TextInput
            label="E-mail"
            type="email"
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <NativeSelect
            label="Role"
            data={[...roles]}
            value={role}
            onChange={(event) => setRole(roleOf(event.currentTarget.value))}
          />
        </Fields>
      </Form>
    </Panel>
  );
}
