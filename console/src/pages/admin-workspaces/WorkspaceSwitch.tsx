import { Switch } from '@mantine/core';
import type { Workspace } from '../../api/views';
import { FailureNote } from '../../parts/FailureNote';
import { useWorkspaceChange } from './useWorkspaceChange';

export function WorkspaceSwitch({ workspace }: { workspace: Workspace }) {
  const change = useWorkspaceChange(workspace.id);
  const isOn = workspace.code_execution;
  return (
    <>
      <FailureNote error={change.error} />
      <Switch
        label={`Code execution in ${workspace.name}`}
        description={
          isOn
            ? 'Editors, admins and owners may run code.'
            : 'Nobody runs code in this workspace, whatever their role.'
        }
        checked={isOn}
        disabled={change.isPending}
        onChange={(event) =>
          change.mutate({
            version: workspace.version,
            code_execution: event.currentTarget.checked,
          })
        }
      />
    </>
  );
}
