import { Button, PasswordInput } from '@mantine/core';
import { useState } from 'react';
import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { changeModel, modelsQuery } from '../../api/models';
import { Confirm } from '../../parts/Confirm';
import { Form } from '../../parts/Form';
import { State } from '../../parts/State';

/** The key of an endpoint goes in and never comes out. */
export function ModelKey({ model }: { model: Model }) {
  const { id, version, has_api_key } = model;
  const [key, setKey] = useState('');
  const [isRemoving, setRemoving] = useState(false);
  const save = useChange(() => changeModel(id, { version, api_key: key }), [modelsQuery.queryKey]);
  return (
    <>
      <div>
        {has_api_key ? <State tone="good">set</State> : <State tone="idle">none</State>}{' '}
        {has_api_key && (
          <Button size="compact-sm" variant="default" onClick={() => setRemoving(true)}>
            Remove the key
          </Button>
        )}
      </div>
      <Form
        action={has_api_key ? 'Replace key' : 'Set key'}
        change={save}
        done={save.isSuccess && key === '' ? 'The key is set.' : null}
        isDisabled={key === ''}
        onSubmit={() => save.mutate(undefined, { onSuccess: () => setKey('') })}
      >
        <PasswordInput
          label={has_api_key ? 'Another key' : 'Key'}
          description="Kept encrypted and never shown again"
          maw={420}
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
      </Form>
      {isRemoving && <RemoveKey model={model} onClose={() => setRemoving(false)} />}
    </>
  );
}

function RemoveKey({ model, onClose }: { model: Model; onClose: () => void }) {
  const { id, version, name } = model;
  const remove = useChange(
    () => changeModel(id, { version, api_key: null }),
    [modelsQuery.queryKey],
  );
  return (
    <Confirm
      title={`Remove the key of ${name}?`}
      action="Remove the key"
      change={remove}
      onClose={onClose}
    >
      The endpoint is asked without a key from now on. An endpoint that wants one refuses: replies
      fail and say so until another key is set.
    </Confirm>
  );
}
