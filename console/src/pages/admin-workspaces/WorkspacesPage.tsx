import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { workspacesQuery } from '../../api/queries';
import type { Workspace } from '../../api/views';
import { span } from '../../format/time';
import { Ago } from '../../parts/Ago';
import { type Column, DataTable } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { Pager } from '../../parts/Pager';
import { State } from '../../parts/State';
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
    cell: (one) => (
      <State tone={one.code_execution ? 'good' : 'idle'}>{one.code_execution ? 'on' : 'off'}</State>
    ),
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
  { name: 'Longest job', cell: (one) => span(one.quotas.max_job_seconds) },
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
            <>
              <DataTable
                label="workspaces"
                rows={page.items}
                rowKey={(one) => one.id}
                columns={columns}
                words={(one) => one.name}
                empty="No workspaces yet. Make the first one above."
              />
              <Pager
                cursor={cursor}
                next={page.next_cursor}
                onGo={(to) => setSearch({ cursor: to })}
              />
            </>
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}
