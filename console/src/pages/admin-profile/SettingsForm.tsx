import { Checkbox, Group, NativeSelect, TextInput } from '@mantine/core';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { profilesQuery } from '../../api/queries';
import { CLASSES, type ProfileDetail } from '../../api/views';
import { Conflict } from '../../parts/Conflict';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { NO_JOBS_YET } from '../../parts/jobs';
import { NumberField } from '../../parts/NumberField';
import type { Versioned, VersionedDraft } from '../../parts/useVersionedDraft';
import { ARTIFACT_TYPES, complaint, NUMBERS, numberOf, type Settings, STARTS } from './settings';

interface Props {
  detail: ProfileDetail;
  draft: VersionedDraft<Values>;
  isLocked: boolean;
}

interface Values {
  name: string;
  settings: Settings;
}

export const draftOf = ({ profile }: ProfileDetail): Versioned<Values> => ({
  version: profile.version,
  values: { name: profile.name, settings: profile.settings },
});

export function SettingsForm({ detail, draft, isLocked }: Props) {
  const profile = detail.profile.id;
  const { version, values, isDirty, set, begin } = draft;
  const save = useChange(
    () =>
      answer(
        api.PATCH('/api/v1/admin/profiles/{profile}', {
          params: { path: { profile } },
          body: { version, ...values },
        }),
      ),
    [profilesQuery.queryKey],
  );
  const { settings } = values;
  const setting = (change: Partial<Settings>) => set({ settings: { ...settings, ...change } });
  return (
    <Form
      action="Save settings"
      change={save}
      done={save.isSuccess && !isDirty ? 'Saved. Sandboxes that run keep theirs.' : null}
      isDisabled={isLocked || !isDirty}
      onSubmit={() => save.mutate(undefined, { onSuccess: (saved) => begin(draftOf(saved)) })}
    >
      <Conflict error={save.error} onReload={() => begin(draftOf(detail))} />
      <Fields>
        <TextInput
          label="Name"
          value={values.name}
          maxLength={80}
          disabled={isLocked}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        <NativeSelect
          label="Class"
          description="For sandboxes that ask for none"
          data={[...CLASSES]}
          value={settings.class}
          disabled={isLocked}
          onChange={(event) => {
            const chosen = CLASSES.find((one) => one === event.currentTarget.value);
            if (chosen) setting({ class: chosen });
          }}
        />
        <NativeSelect
          label="Start of kernels"
          description={STARTS.find(({ value }) => value === settings.start)?.help}
          data={STARTS.map(({ value, label }) => ({ value, label }))}
          value={settings.start}
          disabled={isLocked}
          onChange={(event) => {
            const chosen = STARTS.find(({ value }) => value === event.currentTarget.value);
            if (chosen) setting({ start: chosen.value });
          }}
        />
        {NUMBERS.map((field) => (
          <NumberField
            key={field.key}
            label={field.label}
            unit={field.unit}
            help={field.help}
            error={complaint(save.error, field.key)}
            min={field.min}
            max={field.max}
            isDisabled={isLocked}
            value={numberOf(settings, field)}
            onChange={(value) => setting({ [field.key]: value * field.factor })}
          />
        ))}
      </Fields>
      <Checkbox
        label="Long jobs may be started"
        description={NO_JOBS_YET}
        checked={settings.jobs}
        disabled={isLocked}
        onChange={(event) => setting({ jobs: event.currentTarget.checked })}
      />
      <Checkbox.Group
        label="File types that may leave a sandbox"
        value={settings.artifact_types}
        onChange={(types) => setting({ artifact_types: types })}
      >
        <Group mt="xs">
          {ARTIFACT_TYPES.map((type) => (
            <Checkbox key={type} value={type} label={type} disabled={isLocked} />
          ))}
        </Group>
      </Checkbox.Group>
    </Form>
  );
}
