import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { barrierOf } from '../../api/denials';
import { codeExecutionQuery } from '../../api/queries';
import type { CodeExecution } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { DenialNotice } from '../../parts/DenialNotice';
import { Loaded } from '../../parts/Loaded';
import { Facts, Page, Panel } from '../../parts/Page';
import { QuotaMeters } from '../../parts/QuotaMeters';
import { OnOff } from '../../parts/State';
import { WorkspaceProfile } from '../../parts/WorkspaceProfile';
import { Denials } from './Denials';

const route = getRouteApi('/frame/w/$workspace/code-execution');

export function CodeExecutionPage() {
  const { workspace } = route.useParams();
  const { user } = useSession();
  const query = useQuery(codeExecutionQuery(workspace));
  return (
    <Page
      title="Code execution"
      about="Whether code may run in this workspace, on what, and how much of it."
      actions={
        user.is_system_admin && (
          <Anchor component={Link} to={`/admin/workspaces/${workspace}`}>
            Change it in Admin → Workspaces
          </Anchor>
        )
      }
    >
      <Loaded query={query}>{(view) => <Shown view={view} />}</Loaded>
    </Page>
  );
}

function Shown({ view }: { view: CodeExecution }) {
  const { workspace } = view;
  const barrier = barrierOf(view);
  return (
    <>
      {barrier && <DenialNotice denial={barrier} />}
      <Panel title="State">
        <Facts
          rows={[
            ['Workspace', workspace.name],
            ['Code execution', <OnOff key="switch" isOn={workspace.code_execution} />],
            ['Runtime profile', <WorkspaceProfile key="profile" view={view} />],
          ]}
        />
      </Panel>
      <Panel title="Quotas">
        <QuotaMeters quotas={workspace.quotas} meters={view.meters} />
      </Panel>
      <Panel title="Last denials">
        <Denials denials={view.denials} />
      </Panel>
    </>
  );
}
