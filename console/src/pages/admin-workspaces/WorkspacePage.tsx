import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { barrierOf } from '../../api/denials';
import { codeExecutionQuery } from '../../api/queries';
import type { CodeExecution } from '../../api/views';
import { CopyText } from '../../parts/CopyText';
import { DenialNotice } from '../../parts/DenialNotice';
import { Loaded } from '../../parts/Loaded';
import { Facts, Page, Panel } from '../../parts/Page';
import { QuotaMeters } from '../../parts/QuotaMeters';
import { WorkspaceProfile } from '../../parts/WorkspaceProfile';
import { Denials } from '../code-execution/Denials';
import { useVersionedDraft } from '../../parts/useVersionedDraft';
import { draftOf, WorkspaceForm } from './WorkspaceForm';
import { WorkspaceSwitch } from './WorkspaceSwitch';

const route = getRouteApi('/frame/admin/admin/workspaces/$workspace');

export function WorkspacePage() {
  const { workspace } = route.useParams();
  const query = useQuery(codeExecutionQuery(workspace));
  return (
    <Page
      title={query.data?.workspace.name ?? 'Workspace'}
      about="Its switch, its quotas and what it uses now."
    >
      <Loaded query={query}>{(view) => <Shown key={workspace} view={view} />}</Loaded>
    </Page>
  );
}

function Shown({ view }: { view: CodeExecution }) {
  const { workspace } = view;
  const barrier = barrierOf(view);
  // The switch and the form share the version of the workspace.
  const draft = useVersionedDraft(draftOf(workspace));
  return (
    <>
      {/* Of the workspace's own level the switch below says it. */}
      {barrier && barrier.name !== 'workspace' && <DenialNotice denial={barrier} />}
      <Panel title="Code execution">
        <WorkspaceSwitch workspace={workspace} onSwitched={draft.goOn} />
        <Facts
          rows={[
            ['Runtime profile', <WorkspaceProfile key="profile" view={view} />],
            ['Id', <CopyText key="id" text={workspace.id} what="workspace id" />],
          ]}
        />
      </Panel>
      <Panel title="In use now">
        <QuotaMeters quotas={workspace.quotas} meters={view.meters} />
      </Panel>
      <Panel title="Name and quotas">
        <WorkspaceForm workspace={workspace} draft={draft} />
      </Panel>
      <Panel title="Last denials">
        <Denials denials={view.denials} />
      </Panel>
    </>
  );
}
