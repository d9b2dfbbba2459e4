import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { membersQuery, sessionQuery } from '../../api/queries';
import type { Member } from '../../api/views';
import { Confirm } from '../../parts/Confirm';

interface Props {
  workspace: string;
  member: Member;
  onClose: () => void;
}

export function RemoveMember({ workspace, member, onClose }: Props) {
  const remove = useChange(
    () =>
      answer(
        api.DELETE('/api/v1/workspaces/{workspace}/members/{user}', {
          params: { path: { workspace, user: member.user_id } },
        }),
      ),
    [membersQuery(workspace).queryKey, sessionQuery.queryKey],
  );
  return (
    <Confirm
      title={`Remove ${member.name}?`}
      action={`Remove ${member.name}`}
      change={remove}
      onClose={onClose}
    >
      {member.name} ({member.email}) loses access to this workspace, and keys of theirs stop working
      in it. The account stays, and so does what they made.
    </Confirm>
  );
}
