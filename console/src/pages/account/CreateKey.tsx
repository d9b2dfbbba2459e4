import { Checkbox, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { keysQuery } from '../../api/queries';
import { Form } from '../../parts/Form';
import { SecretBox } from '../../parts/SecretBox';

/** What a key can be for, today. */
const SCOPES: readonly [string, string][] = [
  ['code_execution:run', 'Run code'],
  ['files:read', 'Read files of sandboxes'],
  ['files:write', 'Put files into sandboxes'],
  ['artifacts:read', 'Read artifacts'],
  ['threads:read', 'Read threads'],
  ['threads:write', 'Write in threads'],
  ['knowledge:read', 'Read knowledge'],
  ['knowledge:write', 'Change knowledge'],
];

export function CreateKey({ workspace }: { workspace: string }) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(SCOPES.map(([scope]) => scope));
  const create = useChange(
    () =>
      answer(
        api.POST('/api/v1/workspaces/{workspace}/api-keys', {
          params: { path: { workspace } },
          body: { name, scopes },
        }),
      ),
    [keysQuery(workspace).queryKey],
  );
  return (
    <>
      {create.data && <SecretBox title="Your new key" secret={create.data.token} />}
      <Form
        action="Make API key"
        change={create}
        isDisabled={name === '' || scopes.length === 0}
        onSubmit={() => create.mutate(undefined, { onSuccess: () => setName('') })}
      >
        <TextInput
          label="Name of a new key"
          description="What will use it"
          maw={320}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Checkbox.Group label="It may" value={scopes} onChange={setScopes}>
          <Group mt="xs">
            {SCOPES.map(([scope, label]) => (
              <Checkbox key={scope} value={scope} label={`${label} (${scope})`} />
            ))}
          </Group>
        </Checkbox.Group>
      </Form>
    </>
  );
}
