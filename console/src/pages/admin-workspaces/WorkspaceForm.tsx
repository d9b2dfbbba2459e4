import { NativeSelect, TextInput } from '@mantine/core';
import { CLASSES, type ClassName, type Quotas, type Workspace } from '../../api/views';
import { Conflict } from '../../parts/Conflict';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { NO_JOBS_YET } from '../../parts/jobs';
import { NumberField } from '../../parts/NumberField';
import type { Versioned, VersionedDraft } from '../../parts/useVersionedDraft';
import { useWorkspaceChange } from './useWorkspaceChange';

const MIB = 1024 * 1024;

interface Values {
  name: string;
  quotas: Quotas;
}

export const draftOf = ({ version, name, quotas }: Workspace): Versioned<Values> => ({
  version,
  values: { name, quotas },
});

interface Props {
  workspace: Workspace;
  draft: VersionedDraft<Values>;
}

export function WorkspaceForm({ workspace, draft }: Props) {
  const { version, values, isDirty, set, begin } = draft;
  const save = useWorkspaceChange(workspace.id);
  const { quotas } = values;
  const quota = (change: Partial<Quotas>) => set({ quotas: { ...quotas, ...change } });
  return (
    <Form
      action="Save quotas"
      change={save}
      done={save.isSuccess && !isDirty ? 'Saved.' : null}
      isDisabled={!isDirty}
      onSubmit={() =>
        save.mutate({ version, ...values }, { onSuccess: (saved) => begin(draftOf(saved)) })
      }
    >
      <Conflict error={save.error} onReload={() => begin(draftOf(workspace))} />
      <Fields>
        <TextInput
          label="Name"
          value={values.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        <NumberField
          label="Sandboxes at once"
          help="Idle ones count."
          max={1000}
          value={quotas.max_concurrent}
          onChange={(max_concurrent) => quota({ max_concurrent })}
        />
        <NumberField
          label="New sandboxes per hour"
          help="In a rolling hour."
          max={100_000}
          value={quotas.max_jobs_per_hour}
          onChange={(max_jobs_per_hour) => quota({ max_jobs_per_hour })}
        />
        <NumberField
          label="Longest job"
          unit="s"
          help={NO_JOBS_YET}
          max={604_800}
          value={quotas.max_job_seconds}
          onChange={(max_job_seconds) => quota({ max_job_seconds })}
        />
        <NumberField
          label="Artifacts per day"
          unit="MiB"
          help="From midnight to midnight, UTC."
          max={1024 ** 3}
          value={Math.round(quotas.max_artifact_bytes_per_day / MIB)}
          onChange={(mebibytes) => quota({ max_artifact_bytes_per_day: mebibytes * MIB })}
        />
        <NumberField
          label="Attachments and knowledge base"
          unit="MiB"
          help="All that people have brought and not deleted."
          max={1024 ** 3}
          value={Math.round(quotas.max_uploaded_bytes / MIB)}
          onChange={(mebibytes) => quota({ max_uploaded_bytes: mebibytes * MIB })}
        />
        <NativeSelect
          label="Largest sandbox"
          description="SMALL 1 CPU and 1 GiB, MEDIUM 2 and 2, LARGE 4 and 4"
          data={[...CLASSES]}
          value={quotas.max_resource_class}
          onChange={(event) => quota({ max_resource_class: classOf(event.currentTarget.value) })}
        />
      </Fields>
    </Form>
  );
}

const classOf = (text: string): ClassName => CLASSES.find((one) => one === text) ?? 'SMALL';
