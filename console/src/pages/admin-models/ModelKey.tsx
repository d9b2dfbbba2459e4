import { Button, PasswordInput } from '@mantine/core';
import { useState } from 'react';
import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { changeModel, modelsQuery } from '../../api/models';
import { Confirm } from '../../parts/Confirm';
import { Form } from '../../parts/Form';
import { State } from '../../parts/State';

interface Props {
  model: Model;
  /** Called with the version that was changed and the one that came of it. */
  onChanged: (from: number, to: number) => void;
}

/** Sets the key of a model, or takes it away with null. */
function useKeyChange({ model, onChanged }: Props, api_key: string | null) {
  const { id, version } = model;
  return useChange(async () => {
    const changed = await changeModel(id, { version, api_key });
    onChanged(version, changed.version);
  }, [modelsQuery.queryKey]);
}

/** The key of an endpoint goes in and never comes out. */
export function ModelKey({ model, onChanged }: Props) {
  const { has_api_key } = model;
  const [key, setKey] = useState('');
  const [isRemoving, setRemoving] = useState(false);
  const save = useKeyChange({ model, onChanged }, key);
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
      {isRemoving && (
        <RemoveKey model={model} onChanged={onChanged} onClose={() => setRemoving(false)} />
      )}
    </>
  );
}

function RemoveKey({ model, onChanged, onClose }: Props & { onClose: () => void }) {
  const remove = useKeyChange({ model, onChanged }, null);
  return (
    <Confirm
      title={`Remove the key of ${model.name}?`}
      action="Remove the key"
      change={remove}
      onClose={onClose}
    >
      The endpoint is asked without a key from now on. An endpoint that wants one refuses: replies
      fail and say so until another key is set.
    </Confirm>
  );
}
