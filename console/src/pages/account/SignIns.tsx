import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { signInsQuery } from '../../api/queries';
import type { SignIn } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { FailureNote } from '../../parts/FailureNote';
import { Loaded } from '../../parts/Loaded';
import { Panel } from '../../parts/Page';
import { State } from '../../parts/State';

export function SignIns() {
  const query = useQuery(signInsQuery);
  const end = useChange(
    (session: string) =>
      answer(api.DELETE('/api/v1/account/sessions/{session}', { params: { path: { session } } })),
    [signInsQuery.queryKey],
  );
  const columns: Column<SignIn>[] = [
    {
      name: 'Browser',
      cell: (one) => (
        <>
          {one.user_agent || 'unknown'} {one.is_this && <State tone="info">this browser</State>}
        </>
      ),
    },
    { name: 'From', cell: (one) => <code>{one.address}</code> },
    { name: 'Signed in', cell: (one) => <Ago at={one.created_at} /> },
    { name: 'Last used', cell: (one) => <Ago at={one.seen_at} /> },
    {
      name: ACTIONS,
      // Of this browser's own session the way out is to sign out.
      cell: (one) =>
        !one.is_this && (
          <Button
            variant="default"
            size="xs"
            loading={end.isPending && end.variables === one.id}
            onClick={() => end.mutate(one.id)}
          >
            End session
          </Button>
        ),
    },
  ];
  return (
    <Panel title="Sessions">
      <FailureNote error={end.error} />
      <Loaded query={query}>
        {(page) => (
          <DataTable
            label="sessions"
            rows={page.items}
            rowKey={(one) => one.id}
            columns={columns}
            empty="You are signed in nowhere else."
          />
        )}
      </Loaded>
    </Panel>
  );
}
