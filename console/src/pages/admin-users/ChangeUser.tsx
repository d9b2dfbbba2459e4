import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { sessionQuery } from '../../api/queries';
import type { User } from '../../api/views';
import { Confirm } from '../../parts/Confirm';

export type UserChange = 'grant' | 'revoke' | 'disable' | 'enable';

/** What each change is called, what it does and does not do, and how the API calls it. */
const CHANGES = {
  grant: {
    title: (name: string) => `Make ${name} a system admin?`,
    action: 'Make system admin',
    about: 'They can change everything in Admin. They see no workspace that they do not belong to.',
    body: { is_system_admin: true },
  },
  revoke: {
    title: (name: string) => `Take system admin from ${name}?`,
    action: 'Take system admin away',
    about: 'They no longer see Admin. Their workspaces and roles stay.',
    body: { is_system_admin: false },
  },
  disable: {
    title: (name: string) => `Disable ${name}?`,
    action: 'Disable user',
    about:
      'Their sessions and keys stop working at once. What they made stays, and they can be ' +
      'enabled again.',
    body: { is_disabled: true },
  },
  enable: {
    title: (name: string) => `Enable ${name}?`,
    action: 'Enable user',
    about: 'They can sign in again, with the password that they had.',
    body: { is_disabled: false },
  },
} as const;

interface Props {
  user: User;
  change: UserChange;
  onClose: () => void;
}

export function ChangeUser({ user, change, onClose }: Props) {
  const { title, action, about, body } = CHANGES[change];
  const send = useChange(
    () =>
      answer(
        api.PATCH('/api/v1/admin/users/{user}', { params: { path: { user: user.id } }, body }),
      ),
    [['users'], sessionQuery.queryKey],
  );
  return (
    <Confirm title={title(user.name)} action={action} change={send} onClose={onClose}>
      {about}
    </Confirm>
  );
}
