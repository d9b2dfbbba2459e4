import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { codeExecutionQuery } from '../../api/queries';
import type { CodeExecution } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Facts, Page, Panel } from '../../parts/Page';
import { QuotaMeters } from '../../parts/QuotaMeters';
import { sentence } from '../../parts/sentence';
import { State } from '../../parts/State';
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
  const { deployment_denial: denial, workspace } = view;
  return (
    <>
      {denial && (
        <Notice tone="warn" title={sentence(denial.message)}>
          {sentence(denial.fix)} <code>{denial.name}</code>
        </Notice>
      )}
      {!workspace.code_execution && (
        <Notice tone="info" title={`Code execution is off in ${workspace.name}`}>
          A system admin switches it on at Admin → Workspaces. <code>workspace</code>
        </Notice>
      )}
      <Panel title="State">
        <Facts
          rows={[
            ['Workspace', workspace.name],
            [
              'Code execution',
              workspace.code_execution ? (
                <State key="on" tone="good">
                  on
                </State>
              ) : (
                <State key="off" tone="idle">
                  off
                </State>
              ),
            ],
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
