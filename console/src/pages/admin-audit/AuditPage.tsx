import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { auditQuery } from '../../api/queries';
import type { AuditEntry } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { CopyText } from '../../parts/CopyText';
import type { Column } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import { AuditFilterForm } from './AuditFilterForm';
import { exportAddress, readAuditSearch } from './search';

const route = getRouteApi('/frame/admin/admin/audit');

const columns: readonly Column<AuditEntry>[] = [
  { name: 'When', cell: (entry) => <Ago at={entry.at} /> },
  { name: 'Who', cell: (entry) => entry.actor || entry.actor_kind },
  { name: 'From', cell: (entry) => <code>{entry.address}</code> },
  { name: 'Action', cell: (entry) => <code>{entry.action}</code> },
  {
    name: 'What',
    cell: (entry) =>
      entry.object === entry.object_kind ? entry.object : `${entry.object_kind} ${entry.object}`,
  },
  { name: 'Changed', cell: (entry) => entry.fields.join(', ') },
  {
    name: 'Request',
    cell: (entry) =>
      entry.request_id !== '' && (
        <CopyText
          text={entry.request_id}
          shown={`…${entry.request_id.slice(-8)}`}
          what="request id"
        />
      ),
  },
];

export function AuditPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(auditQuery(search));
  return (
    <Page
      title="Audit logs"
      about="Who did what, when and from where. Names of what changed, never values."
      actions={
        <>
          <Anchor href={exportAddress('csv', search)} download>
            Export CSV
          </Anchor>
          <Anchor href={exportAddress('json', search)} download>
            Export JSON
          </Anchor>
        </>
      }
    >
      <Panel title="Filter">
        <AuditFilterForm
          // The fields follow the address, also when the person goes back.
          key={JSON.stringify({ ...search, cursor: undefined })}
          search={search}
          onFilter={(filter) => void navigate({ search: filter })}
        />
      </Panel>
      <Panel title="Entries">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="audit entries"
              page={page}
              rowKey={(entry) => entry.id}
              columns={columns}
              empty="No entries match. Widen the filter above."
              cursor={search.cursor}
              onGo={(cursor) => void navigate({ search: readAuditSearch({ ...search, cursor }) })}
            />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}
