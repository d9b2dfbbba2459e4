import { Anchor, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ownSandboxesQuery } from '../../api/queries';
import { roleOf, type Sandbox } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { ACTIONS, type Column } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import {
  endedColumn,
  idColumn,
  limitColumns,
  madeColumn,
  stateColumn,
} from '../../parts/sandboxes';
import { useListSearch } from '../../parts/useListSearch';
import { EndOwnSandbox } from './EndOwnSandbox';

const route = getRouteApi('/frame/w/$workspace/sandboxes');

const whose = (one: Sandbox) => (one.user_id ? 'you' : 'a service');

/** Only who manages the workspace sees sandboxes of services, and has to tell them apart. */
const whoseColumn: Column<Sandbox> = { name: 'Whose', order: whose, cell: whose };

const facts: readonly Column<Sandbox>[] = [
  stateColumn,
  { name: 'Class', order: (one) => one.class, cell: (one) => one.class },
  madeColumn,
  ...limitColumns,
  endedColumn,
  idColumn,
];

const words = (one: Sandbox) =>
  [one.state, one.class, whose(one), one.ended_detail ?? '', one.id].join(' ');

export function OwnSandboxesPage() {
  const { workspace } = route.useParams();
  const [{ cursor }, setSearch] = useListSearch();
  const query = useQuery(ownSandboxesQuery(workspace, cursor));
  const [ending, setEnding] = useState<Sandbox | null>(null);
  const hasServices = query.data?.items.some((one) => !one.user_id) ?? false;
  const columns: Column<Sandbox>[] = [
    ...(hasServices ? [whoseColumn] : []),
    ...facts,
    {
      name: ACTIONS,
      cell: (one) =>
        one.state !== 'ended' && (
          <Button variant="default" size="xs" onClick={() => setEnding(one)}>
            End it
          </Button>
        ),
    },
  ];
  return (
    <Page
      title="Sandboxes"
      about="What you run code in. Unused, its processes end and its files stay; at its hard limit all of it ends."
      actions={
        <Anchor component={Link} to={`/w/${workspace}/code-execution`}>
          Quotas of this workspace
        </Anchor>
      }
    >
      <Panel title="In this workspace">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="sandboxes"
              page={page}
              rowKey={(one) => one.id}
              columns={columns}
              words={words}
              empty={<Empty workspace={workspace} />}
              cursor={cursor}
              onGo={(to) => setSearch({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
      {ending && <EndOwnSandbox sandbox={ending} onClose={() => setEnding(null)} />}
    </Page>
  );
}

function Empty({ workspace }: { workspace: string }) {
  const { memberships } = useSession();
  const role = roleOf(memberships.find((one) => one.workspace_id === workspace)?.role ?? '');
  if (role === 'viewer') {
    return <>No sandboxes: viewers run no code. An admin of the workspace gives the role editor.</>;
  }
  return (
    <>
      <p>No sandboxes yet. One shows here as soon as a program runs code with a key of yours.</p>
      <Button
        variant="default"
        renderRoot={(props) => <Link to="/account" search={{ workspace }} {...props} />}
      >
        Make an API key
      </Button>
    </>
  );
}
