import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { sandboxesQuery } from '../../api/queries';
import type { LiveSandbox } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { CopyText } from '../../parts/CopyText';
import { Countdown } from '../../parts/Countdown';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { NamedState } from '../../parts/State';
import { EndSandbox } from './EndSandbox';

/** A suspended sandbox has been idle for long enough; only its files are left. */
const idleUntil = (one: LiveSandbox) =>
  one.state === 'suspended' ? null : Date.parse(one.active_at) + one.idle_seconds * 1000;

const facts: readonly Column<LiveSandbox>[] = [
  {
    name: 'Who',
    order: (one) => one.user_email ?? '',
    cell: (one) => one.user_email ?? 'a service',
  },
  { name: 'Workspace', order: (one) => one.workspace_name, cell: (one) => one.workspace_name },
  {
    name: 'Profile',
    order: (one) => one.profile_name,
    cell: (one) => `${one.profile_name}, ${one.class}`,
  },
  { name: 'State', order: (one) => one.state, cell: (one) => <NamedState name={one.state} /> },
  { name: 'Made', order: (one) => one.created_at, cell: (one) => <Ago at={one.created_at} /> },
  {
    name: 'Idle in',
    order: (one) => idleUntil(one) ?? 0,
    cell: (one) => {
      const until = idleUntil(one);
      return until === null ? 'idle, files stay' : <Countdown until={until} />;
    },
  },
  {
    name: 'Ends in',
    order: (one) => one.hard_deadline,
    cell: (one) => <Countdown until={Date.parse(one.hard_deadline)} />,
  },
  {
    name: 'Id',
    cell: (one) => <CopyText text={one.id} shown={`…${one.id.slice(-8)}`} what="sandbox id" />,
  },
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
    <Page title="Sandboxes" about="Every sandbox that is there now, in all workspaces.">
      <Panel title="Live">
        <Loaded query={query}>
          {(page) => (
            <DataTable
              label="sandboxes"
              rows={page.items}
              rowKey={(one) => one.id}
              columns={columns}
              words={(one) =>
                `${one.user_email ?? 'a service'} ${one.workspace_name} ${one.profile_name} ${one.state} ${one.id}`
              }
              empty="No sandboxes. One shows here as soon as somebody runs code."
            />
          )}
        </Loaded>
      </Panel>
      {ending && <EndSandbox sandbox={ending} onClose={() => setEnding(null)} />}
    </Page>
  );
}
