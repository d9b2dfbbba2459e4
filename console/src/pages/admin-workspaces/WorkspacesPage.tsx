import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { workspacesQuery } from '../../api/queries';
import type { Workspace } from '../../api/views';
import { Ago } from '../../parts/Ago';
import type { Column } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import { OnOff } from '../../parts/State';
import { useListSearch } from '../../parts/useListSearch';
import { CreateWorkspace } from './CreateWorkspace';

const columns: readonly Column<Workspace>[] = [
  {
    name: 'Name',
    order: (one) => one.name,
    cell: (one) => (
      <Anchor component={Link} to={`/admin/workspaces/${one.id}`}>
        {one.name}
      </Anchor>
    ),
  },
  {
    name: 'Code execution',
    order: (one) => Number(one.code_execution),
    cell: (one) => <OnOff isOn={one.code_execution} />,
  },
  {
    name: 'At once',
    order: (one) => one.quotas.max_concurrent,
    cell: (one) => `${one.quotas.max_concurrent} ${one.quotas.max_resource_class}`,
  },
  {
    name: 'Per hour',
    order: (one) => one.quotas.max_jobs_per_hour,
    cell: (one) => one.quotas.max_jobs_per_hour,
  },
  { name: 'Made', order: (one) => one.created_at, cell: (one) => <Ago at={one.created_at} /> },
];

export function WorkspacesPage() {
  const [{ cursor }, setSearch] = useListSearch();
  const query = useQuery(workspacesQuery(cursor));
  return (
    <Page title="Workspaces" about="Groups of people with their own switch and quotas.">
      <CreateWorkspace />
      <Panel title="All workspaces">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="workspaces"
              page={page}
              rowKey={(one) => one.id}
              columns={columns}
              words={(one) => one.name}
              empty="No workspaces yet. Make the first one above."
              cursor={cursor}
              onGo={(to) => setSearch({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}
