import { Switch } from '@mantine/core';
import type { Workspace } from '../../api/views';
import { FailureNote } from '../../parts/FailureNote';
import { useWorkspaceChange } from './useWorkspaceChange';

interface Props {
  workspace: Workspace;
  /** Called with the version that was switched and the one that came of it. */
  onSwitched: (from: number, to: number) => void;
}

export function WorkspaceSwitch({ workspace, onSwitched }: Props) {
  const change = useWorkspaceChange(workspace.id);
  const { version, code_execution: isOn } = workspace;
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
          change.mutate(
            { version, code_execution: event.currentTarget.checked },
            { onSuccess: (saved) => onSwitched(version, saved.version) },
          )
        }
      />
    </>
  );
}
