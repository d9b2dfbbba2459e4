import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { usersQuery } from '../../api/queries';
import type { User } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import { type RowAction, RowMenu } from '../../parts/RowMenu';
import { State } from '../../parts/State';
import { useListSearch } from '../../parts/useListSearch';
import { ChangeUser, type UserChange } from './ChangeUser';
import { CreateUser } from './CreateUser';

interface Asked {
  user: User;
  change: UserChange;
}

export function UsersPage() {
  const [{ cursor }, setSearch] = useListSearch();
  const query = useQuery(usersQuery(cursor));
  const { user: self } = useSession();
  const [asked, setAsked] = useState<Asked | null>(null);
  const columns: Column<User>[] = [
    { name: 'Name', order: (user) => user.name, cell: (user) => user.name },
    { name: 'E-mail', order: (user) => user.email, cell: (user) => user.email },
    {
      name: 'State',
      cell: (user) => (
        <>
          {user.is_system_admin && <State tone="info">system admin</State>}{' '}
          {user.is_disabled ? (
            <State tone="warn">disabled</State>
          ) : (
            <State tone="good">active</State>
          )}
        </>
      ),
    },
    {
      name: 'Made',
      order: (user) => user.created_at,
      cell: (user) => <Ago at={user.created_at} />,
    },
    {
      name: ACTIONS,
      cell: (user) => (
        <RowMenu
          of={user.name}
          actions={actionsFor(user, user.id === self.id, (change) => setAsked({ user, change }))}
        />
      ),
    },
  ];
  return (
    <Page title="Users" about="Everybody who can sign in. System admins look after all of it.">
      <CreateUser />
      <Panel title="All users">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="users"
              page={page}
              rowKey={(user) => user.id}
              columns={columns}
              words={(user) => `${user.name} ${user.email}`}
              empty="No users yet. Make the first one above."
              cursor={cursor}
              onGo={(to) => setSearch({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
      {asked && <ChangeUser {...asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}

function actionsFor(user: User, isSelf: boolean, ask: (change: UserChange) => void): RowAction[] {
  const admin: RowAction = user.is_system_admin
    ? { label: 'Take system admin away', onClick: () => ask('revoke') }
    : { label: 'Make system admin', onClick: () => ask('grant') };
  // Nobody locks themselves out with one click.
  if (isSelf) return [admin];
  const state: RowAction = user.is_disabled
    ? { label: `Enable ${user.name}`, onClick: () => ask('enable') }
    : { label: `Disable ${user.name}`, isDangerous: true, onClick: () => ask('disable') };
  return [admin, state];
}
