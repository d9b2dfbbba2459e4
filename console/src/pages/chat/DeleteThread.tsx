import { useNavigate } from '@tanstack/react-router';
import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { artifactsKey } from '../../api/files';
import { deleteThread, threadsKey } from '../../api/threads';
import { Confirm } from '../../parts/Confirm';

export function DeleteThread({ thread, onClose }: { thread: Thread; onClose: () => void }) {
  const navigate = useNavigate();
  const { id, workspace_id: workspace, title, is_shared } = thread;
  const remove = useChange(async () => {
    await deleteThread(id);
    await navigate({ to: '/w/$workspace/chat', params: { workspace } });
  }, [threadsKey(workspace), artifactsKey(workspace)]);
  return (
    <Confirm
      title={`Delete ${title}?`}
      action="Delete this thread"
      change={remove}
      onClose={onClose}
    >
      Its messages, attachments and files are gone for {is_shared ? 'everybody' : 'good'}, and what
      runs in it stops. This cannot be taken back. Files of the knowledge base and other threads
      stay.
    </Confirm>
  );
}
