import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { stopReply, threadsKey } from '../../api/threads';
import type { Reply } from '../../chat/view';

/** The way to end the reply that runs. */
export interface Stop {
  /** Whether it was asked for already; what runs ends a little later. */
  isStopping: boolean;
  error: Error | null;
  go: () => void;
}

/** Nothing where no reply runs, or for those who may not end it. */
export function useStop(thread: Thread, running: Reply | null): Stop | null {
  const stop = useChange(
    async (reply: string) => {
      await stopReply(thread.id, reply);
      return reply;
    },
    [threadsKey(thread.workspace_id)],
  );
  if (running === null || !thread.may_write) return null;
  const { id } = running;
  const isOfThis = stop.variables === id;
  return {
    isStopping: isOfThis && (stop.isPending || stop.isSuccess),
    error: isOfThis ? stop.error : null,
    go: () => stop.mutate(id),
  };
}
