import { Modal, Radio, Stack } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { membersQuery, sessionQuery } from '../../api/queries';
import { type Member, type RoleName, roleOf, ROLES } from '../../api/views';
import { Form } from '../../parts/Form';
import { Notice } from '../../parts/Notice';
import { OnlyOwner } from './OnlyOwner';

/** What each role may do beyond the one before it. */
const ABOUT: Record<RoleName, string> = {
  viewer: 'Reads shared threads, their files and knowledge.',
  editor: 'Runs code, writes in threads and looks after knowledge too.',
  admin: 'Looks after members up to admins too.',
  owner: 'Looks after owners too.',
};

interface Props {
  workspace: string;
  member: Member;
  /** What the person that is signed in may give. */
  roles: readonly RoleName[];
  isSelf: boolean;
  isOnlyOwner: boolean;
  onClose: () => void;
}

/** Another role is chosen and then given: nothing happens while somebody goes through the list. */
export function ChangeRole(props: Props) {
  const { workspace, member, roles, isSelf, isOnlyOwner, onClose } = props;
  const present = roleOf(member.role);
  const [role, setRole] = useState(present);
  const change = useChange(
    () =>
      answer(
        api.PATCH('/api/v1/workspaces/{workspace}/members/{user}', {
          params: { path: { workspace, user: member.user_id } },
          body: { role },
        }),
      ),
    [membersQuery(workspace).queryKey, sessionQuery.queryKey],
  );
  const isLess = ROLES.indexOf(role) < ROLES.indexOf(present);
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Change the role of ${member.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Form
        action="Change role"
        change={change}
        isDisabled={role === present || isOnlyOwner}
        onSubmit={() => change.mutate(undefined, { onSuccess: onClose })}
      >
        {isOnlyOwner && <OnlyOwner name={member.name} isSelf={isSelf} />}
        <Radio.Group
          label={`Role of ${member.name}`}
          value={role}
          onChange={(value) => setRole(roleOf(value))}
        >
          <Stack gap="xs" mt="xs">
            {roles.map((one) => (
              <Radio
                key={one}
                value={one}
                label={one}
                description={ABOUT[one]}
                disabled={isOnlyOwner}
              />
            ))}
          </Stack>
        </Radio.Group>
        {isSelf && isLess && (
          <Notice tone="warn" title="You take rights from yourself">
            You cannot give them back to yourself: whoever still has them can.
          </Notice>
        )}
      </Form>
    </Modal>
  );
}
