import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { changeThread, threadQuery, threadsKey } from '../../api/threads';
import { useSession } from '../../frame/useSession';
import { Confirm } from '../../parts/Confirm';

/** Says exactly who will read what, before it is so. */
export function ShareThread({ thread, onClose }: { thread: Thread; onClose: () => void }) {
  const { memberships } = useSession();
  const { id, workspace_id, is_shared, title, version } = thread;
  const workspace =
    memberships.find((one) => one.workspace_id === workspace_id)?.name ?? 'the workspace';
  const change = useChange(
    () => changeThread(id, { version, is_shared: !is_shared }),
    [threadQuery(id).queryKey, threadsKey(workspace_id)],
  );
  if (is_shared) {
    return (
      <Confirm
        title={`Make ${title} private?`}
        action="Make private"
        change={change}
        onClose={onClose}
      >
        From now on only you see it, with all its messages, files and previews: also what others
        wrote in it. What they have downloaded stays with them. A reply that runs goes on.
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Share ${title} with ${workspace}?`}
      action={`Share with ${workspace}`}
      change={change}
      onClose={onClose}
    >
      Every member of {workspace}, viewers too, will read all of it: messages, code, files and
      previews, also what was there before. Editors and up will write in it; what they run uses
      their own rights. Nobody outside of {workspace} sees it. You can make it private again.
    </Confirm>
  );
}
