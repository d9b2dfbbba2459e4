import type { CodeExecution } from '../api/views';
import { NamedState } from './State';

const SOURCES = {
  workspace: 'set for this workspace',
  organization: 'from its organization',
  default: 'the default of this installation',
} as const;

/** The profile that a workspace's sandboxes are made on, and where it comes from. */
export function WorkspaceProfile({ view }: { view: CodeExecution }) {
  if (!view.profile_name) return <>None; a system admin chooses a default profile</>;
  return (
    <>
      {view.profile_name} {view.profile_source && <>({SOURCES[view.profile_source]}) </>}
      {view.profile_state && <NamedState name={view.profile_state} />}
    </>
  );
}
