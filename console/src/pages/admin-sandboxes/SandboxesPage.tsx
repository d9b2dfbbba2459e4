import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { sandboxesQuery } from '../../api/queries';
import type { LiveSandbox } from '../../api/views';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { idColumn, limitColumns, madeColumn, stateColumn } from '../../parts/sandboxes';
import { EndAnySandbox } from './EndAnySandbox';
import { whose } from './whose';

const facts: readonly Column<LiveSandbox>[] = [
  {
    name: 'Who',
    order: whose,
    cell: whose,
  },
  { name: 'Workspace', order: (one) => one.workspace_name, cell: (one) => one.workspace_name },
  {
    name: 'Profile',
    order: (one) => one.profile_name,
    cell: (one) => `${one.profile_name}, ${one.class}`,
  },
  stateColumn,
  madeColumn,
  ...limitColumns,
  idColumn,
];

export function SandboxesPage() {
  const query = useQuery(sandboxesQuery);
  const [ending, setEnding] = useState<LiveSandbox | null>(null);
  const columns: Column<LiveSandbox>[] = [
    ...facts,
    {
      name: ACTIONS,
      cell: (one) => (
        <Button variant="default" size="xs" onClick={() => setEnding(one)}>
          End it
        </Button>
      ),
    },
  ];
  return (
    <Page
      title="Sandboxes live"
      about="Every sandbox that is there now, in all workspaces, those too in which previews of files are made."
    >
      <Panel title="Live">
        <Loaded query={query}>
          {(page) => (
            <DataTable
              label="sandboxes"
              rows={page.items}
              rowKey={(one) => one.id}
              columns={columns}
              words={(one) =>
                `${whose(one)} ${one.workspace_name} ${one.profile_name} ${one.state} ${one.id}`
              }
              empty="No sandboxes. One shows here as soon as somebody runs code or looks at a file."
            />
          )}
        </Loaded>
      </Panel>
      {ending && <EndAnySandbox sandbox={ending} onClose={() => setEnding(null)} />}
    </Page>
  );
}
