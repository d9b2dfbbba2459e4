import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { membersQuery, sessionQuery } from '../../api/queries';
import { type Member, type RoleName, roleOf, ROLES } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { FailureNote } from '../../parts/FailureNote';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { RowMenu } from '../../parts/RowMenu';
import { AddMember } from './AddMember';
import { RemoveMember } from './RemoveMember';

const route = getRouteApi('/frame/w/$workspace/members');

export function MembersPage() {
  const { workspace } = route.useParams();
  const { memberships, user } = useSession();
  const query = useQuery(membersQuery(workspace));
  const membership = memberships.find((one) => one.workspace_id === workspace);
  const own = roleOf(membership?.role ?? '');
  const grantable =
    own === 'owner' || own === 'admin' ? ROLES.slice(0, ROLES.indexOf(own) + 1) : [];
  const [leaving, setLeaving] = useState<Member | null>(null);
  const change = useChange(
    ({ user, role }: { user: string; role: RoleName }) =>
      answer(
        api.PATCH('/api/v1/workspaces/{workspace}/members/{user}', {
          params: { path: { workspace, user } },
          body: { role },
        }),
      ),
    [membersQuery(workspace).queryKey, sessionQuery.queryKey],
  );
  const mayChange = (member: Member) => grantable.includes(roleOf(member.role));
  const columns: Column<Member>[] = [
    { name: 'Name', cell: (member) => member.name, order: (member) => member.name },
    { name: 'E-mail', cell: (member) => member.email, order: (member) => member.email },
    {
      name: 'Role',
      order: (member) => ROLES.indexOf(roleOf(member.role)),
      cell: (member) =>
        mayChange(member) ? (
          <NativeSelect
            size="xs"
            aria-label={`Role of ${member.name}`}
            data={grantable}
            value={member.role}
            onChange={(event) =>
              change.mutate({ user: member.user_id, role: roleOf(event.currentTarget.value) })
            }
          />
        ) : (
          member.role
        ),
    },
    {
      name: 'Since',
      cell: (member) => <Ago at={member.created_at} />,
      order: (member) => member.created_at,
    },
    {
      name: ACTIONS,
      cell: (member) => {
        const isSelf = member.user_id === user.id;
        if (!isSelf && !mayChange(member)) return null;
        const label = isSelf ? 'Leave this workspace' : `Remove ${member.name}`;
        return (
          <RowMenu
            of={member.name}
            actions={[{ label, isDangerous: true, onClick: () => setLeaving(member) }]}
          />
        );
      },
    },
  ];
  return (
    <Page
      title="Members"
      about="Viewers read. Editors run code. Admins look after members. Owners look after admins."
    >
      {grantable.length > 0 && <AddMember workspace={workspace} roles={grantable} />}
      <Panel title="Who belongs to it">
        <FailureNote error={change.error} />
        <Loaded query={query}>
          {(page) => (
            <DataTable
              label="members"
              rows={page.items}
              rowKey={(member) => member.user_id}
              columns={columns}
              words={(member) => `${member.name} ${member.email} ${member.role}`}
              empty="Nobody belongs to this workspace. Its admins add people by e-mail."
            />
          )}
        </Loaded>
      </Panel>
      {leaving && (
        <RemoveMember workspace={workspace} member={leaving} onClose={() => setLeaving(null)} />
      )}
    </Page>
  );
}
