import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { changeModel, modelsQuery } from '../../api/models';
import { Conflict } from '../../parts/Conflict';
import { Form } from '../../parts/Form';
import { Notice } from '../../parts/Notice';
import { sentence } from '../../format/sentence';
import type { Versioned, VersionedDraft } from '../../parts/useVersionedDraft';
import { isComplete, ModelFields, type ModelValues } from './ModelFields';

export const draftOf = (one: Model): Versioned<ModelValues> => ({
  version: one.version,
  values: {
    name: one.name,
    base_url: one.base_url,
    model: one.model,
    context_tokens: one.context_tokens,
    connect_timeout_seconds: one.connect_timeout_seconds,
    silence_timeout_seconds: one.silence_timeout_seconds,
    reply_timeout_seconds: one.reply_timeout_seconds,
  },
});

interface Props {
  model: Model;
  draft: VersionedDraft<ModelValues>;
}

export function ModelForm({ model, draft }: Props) {
  const { version, values, isDirty, set, begin } = draft;
  const save = useChange(
    () => changeModel(model.id, { version, ...values }),
    [modelsQuery.queryKey, ['workspace']],
  );
  const leaves = model.has_api_key && hostOf(values.base_url) !== hostOf(model.base_url);
  return (
    <Form
      action="Save settings"
      change={save}
      done={save.isSuccess && !isDirty ? 'Saved. Replies that run go on as they began.' : null}
      isDisabled={!isDirty || !isComplete(values)}
      onSubmit={() => save.mutate(undefined, { onSuccess: (saved) => begin(draftOf(saved)) })}
    >
      <Conflict error={save.error} onReload={() => begin(draftOf(model))} />
      {save.data?.notice && !isDirty && <Notice tone="warn" title={sentence(save.data.notice)} />}
      <ModelFields values={values} set={set} />
      {leaves && (
        <Notice tone="warn" title="The key is not sent to another host">
          With this address the key that is set is removed. Enter the one of the new host below
          after saving.
        </Notice>
      )}
    </Form>
  );
}

function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return '';
  }
}
