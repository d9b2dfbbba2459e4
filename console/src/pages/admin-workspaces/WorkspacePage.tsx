import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { codeExecutionQuery } from '../../api/queries';
import type { CodeExecution } from '../../api/views';
import { CopyText } from '../../parts/CopyText';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Facts, Page, Panel } from '../../parts/Page';
import { QuotaMeters } from '../../parts/QuotaMeters';
import { sentence } from '../../parts/sentence';
import { WorkspaceProfile } from '../../parts/WorkspaceProfile';
import { Denials } from '../code-execution/Denials';
import { WorkspaceForm } from './WorkspaceForm';
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
  const { deployment_denial: denial, workspace } = view;
  return (
    <>
      {denial && (
        <Notice tone="warn" title={sentence(denial.message)}>
          {sentence(denial.fix)} <code>{denial.name}</code>
        </Notice>
      )}
      <Panel title="Code execution">
        <WorkspaceSwitch workspace={workspace} />
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
        <WorkspaceForm workspace={workspace} />
      </Panel>
      <Panel title="Last denials">
        <Denials denials={view.denials} />
      </Panel>
    </>
  );
}
