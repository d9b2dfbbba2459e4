import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { membersQuery, sessionQuery } from '../../api/queries';
import type { Member } from '../../api/views';
import { Confirm } from '../../parts/Confirm';
import { OnlyOwner } from './OnlyOwner';

interface Props {
  workspace: { id: string; name: string };
  member: Member;
  isSelf: boolean;
  isOnlyOwner: boolean;
  onClose: () => void;
}

/** Asks before a member is taken out, or before somebody leaves. */
export function RemoveMember({ workspace, member, isSelf, isOnlyOwner, onClose }: Props) {
  const navigate = useNavigate();
  const path = { workspace: workspace.id, user: member.user_id };
  const remove = useChange(
    () => answer(api.DELETE('/api/v1/workspaces/{workspace}/members/{user}', { params: { path } })),
    // Whoever has left may not read the list any more.
    [...(isSelf ? [] : [membersQuery(workspace.id).queryKey]), sessionQuery.queryKey],
  );
  if (isSelf) {
    return (
      <Confirm
        title={`Leave ${workspace.name}?`}
        action={`Leave ${workspace.name}`}
        change={remove}
        isDisabled={isOnlyOwner}
        onClose={onClose}
        onDone={() => void navigate({ to: '/' })}
      >
        {isOnlyOwner ? (
          <OnlyOwner name={member.name} isSelf />
        ) : (
          <>
            You lose access to {workspace.name}, to your own threads and files in it too, and your
            keys stop working in it. Your account stays, and so does what you made. To come back you
            have to be added by an admin.
          </>
        )}
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Remove ${member.name}?`}
      action={`Remove ${member.name}`}
      change={remove}
      isDisabled={isOnlyOwner}
      onClose={onClose}
    >
      {isOnlyOwner ? (
        <OnlyOwner name={member.name} isSelf={false} />
      ) : (
        <>
          {member.name} ({member.email}) loses access to this workspace, and keys of theirs stop
          working in it. The account stays, and so does what they made.
        </>
      )}
    </Confirm>
  );
}
