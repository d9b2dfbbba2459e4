import { Checkbox, Group, NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { profilesQuery } from '../../api/queries';
import { CLASSES, type ProfileDetail } from '../../api/views';
import { Conflict } from '../../parts/Conflict';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { NumberField } from '../../parts/NumberField';
import { useDraft } from '../../parts/useDraft';
import { useLeaveGuard } from '../../parts/useLeaveGuard';
import { ARTIFACT_TYPES, NUMBERS, numberOf, type Settings, textsOf } from './settings';

interface Props {
  detail: ProfileDetail;
  isLocked: boolean;
}

interface Values {
  name: string;
  settings: Settings;
}

const valuesOf = ({ profile }: ProfileDetail): Values => ({
  name: profile.name,
  settings: profile.settings,
});

export function SettingsForm({ detail, isLocked }: Props) {
  const profile = detail.profile.id;
  // The version that the draft began from: one that came meanwhile has to show as a conflict.
  const [version, setVersion] = useState(detail.profile.version);
  const { values, isDirty, set, reset } = useDraft(valuesOf(detail));
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
  const begin = (from: ProfileDetail) => {
    setVersion(from.profile.version);
    reset(valuesOf(from));
  };
  useLeaveGuard(isDirty);
  const { settings } = values;
  const setting = (key: string, value: unknown) => set({ settings: { ...settings, [key]: value } });
  // Steps such as activating count the version up without touching what is set here.
  if (!isDirty && version !== detail.profile.version) begin(detail);
  return (
    <Form
      action="Save settings"
      isBusy={save.isPending}
      error={save.error}
      done={save.isSuccess && !isDirty ? 'Saved. Sandboxes that run keep theirs.' : null}
      isDisabled={isLocked || !isDirty}
      onSubmit={() => save.mutate(undefined, { onSuccess: begin })}
    >
      <Conflict error={save.error} onReload={() => begin(detail)} />
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
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          data={[...CLASSES]}
          value={String(settings.class)}
          disabled={isLocked}
          onChange={(event) => setting('class', event.currentTarget.value)}
        />
        {NUMBERS.map((field) => (
          <NumberField
            key={field.key}
            label={field.label}
            unit={field.unit}
            help={field.help}
            min={field.min}
            max={field.max}
            isDisabled={isLocked}
            value={numberOf(settings, field)}
            onChange={(value) => setting(field.key, value * field.factor)}
          />
        ))}
      </Fields>
      <Checkbox
        label="Long jobs may be started"
        checked={settings.jobs === true}
        disabled={isLocked}
        onChange={(event) => setting('jobs', event.currentTarget.checked)}
      />
      <Checkbox.Group
        label="File types that may leave a sandbox"
        value={textsOf(settings.artifact_types)}
        onChange={(types) => setting('artifact_types', types)}
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
