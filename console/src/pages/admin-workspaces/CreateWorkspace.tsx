import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { sessionQuery } from '../../api/queries';
import { Form } from '../../parts/Form';
import { Panel } from '../../parts/Page';

export function CreateWorkspace() {
  const [name, setName] = useState('');
  const create = useChange(
    () => answer(api.POST('/api/v1/admin/workspaces', { body: { name } })),
    [['workspaces'], sessionQuery.queryKey],
  );
  return (
    <Panel title="Make a workspace">
      <Form
        action="Make workspace"
        change={create}
        done={create.data ? `${create.data.name} is there. No code runs in it yet.` : null}
        isDisabled={name === ''}
        onSubmit={() => create.mutate(undefined, { onSuccess: () => setName('') })}
      >
        <TextInput
          label="Name"
          description="You become its owner"
          maw={320}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      </Form>
    </Panel>
  );
}
