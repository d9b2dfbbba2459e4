import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { membersQuery } from '../../api/queries';
import { type Member, type RoleName, roleOf, ROLES } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { type RowAction, RowMenu } from '../../parts/RowMenu';
import { AddMember } from './AddMember';
import { ChangeRole } from './ChangeRole';
import { RemoveMember } from './RemoveMember';

const route = getRouteApi('/frame/w/$workspace/members');

const facts: readonly Column<Member>[] = [
  { name: 'Name', cell: (member) => member.name, order: (member) => member.name },
  { name: 'E-mail', cell: (member) => member.email, order: (member) => member.email },
  {
    name: 'Role',
    cell: (member) => member.role,
    order: (member) => ROLES.indexOf(roleOf(member.role)),
  },
  {
    name: 'Since',
    cell: (member) => <Ago at={member.created_at} />,
    order: (member) => member.created_at,
  },
];

interface Asked {
  member: Member;
  what: 'role' | 'removal';
}

export function MembersPage() {
  const { workspace } = route.useParams();
  const { memberships, user } = useSession();
  const query = useQuery(membersQuery(workspace));
  const membership = memberships.find((one) => one.workspace_id === workspace);
  const grantable = grantableBy(roleOf(membership?.role ?? ''));
  const [asked, setAsked] = useState<Asked | null>(null);
  const close = () => setAsked(null);
  const owners = query.data?.items.filter(({ role }) => role === 'owner') ?? [];
  const about = (member: Member) => ({
    isSelf: member.user_id === user.id,
    isOnlyOwner: owners.length === 1 && owners[0]?.user_id === member.user_id,
  });
  const actions = (member: Member): RowAction[] => {
    const { isSelf } = about(member);
    const mayChange = grantable.includes(roleOf(member.role));
    const role: RowAction = {
      label: 'Change role',
      onClick: () => setAsked({ member, what: 'role' }),
    };
    const removal: RowAction = {
      label: isSelf ? 'Leave this workspace' : `Remove ${member.name}`,
      isDangerous: true,
      onClick: () => setAsked({ member, what: 'removal' }),
    };
    return [...(mayChange ? [role] : []), ...(mayChange || isSelf ? [removal] : [])];
  };
  const columns: Column<Member>[] = [
    ...facts,
    { name: ACTIONS, cell: (member) => <RowMenu of={member.name} actions={actions(member)} /> },
  ];
  return (
    <Page
      title="Members"
      about="Viewers read. Editors run code. Admins look after members. Owners look after admins."
    >
      {grantable.length > 0 && (
        <AddMember key={workspace} workspace={workspace} roles={grantable} />
      )}
      <Panel title="Who belongs to it">
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
      {asked?.what === 'role' && (
        <ChangeRole
          workspace={workspace}
          member={asked.member}
          roles={grantable}
          {...about(asked.member)}
          onClose={close}
        />
      )}
      {asked?.what === 'removal' && (
        <RemoveMember
          workspace={{ id: workspace, name: membership?.name ?? 'this workspace' }}
          member={asked.member}
          {...about(asked.member)}
          onClose={close}
        />
      )}
    </Page>
  );
}

/** The roles that somebody may give and take: none above the own one. */
const grantableBy = (own: RoleName): readonly RoleName[] =>
  own === 'owner' || own === 'admin' ? ROLES.slice(0, ROLES.indexOf(own) + 1) : [];
