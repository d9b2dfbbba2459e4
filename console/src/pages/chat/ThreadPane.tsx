import { Anchor, VisuallyHidden } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Thread } from '../../api/views';
import { Failure } from '../../api/failure';
import { artifactsKey } from '../../api/files';
import type { Link as StreamLink } from '../../api/stream/line';
import { chatQuery, threadQuery, threadsKey } from '../../api/threads';
import { announcement, runningReply } from '../../chat/telling';
import { useThread } from '../../chat/useThread';
import type { ThreadState } from '../../chat/view';
import { useSession } from '../../frame/useSession';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Composer } from './Composer';
import styles from './Thread.module.css';
import { ThreadHeader } from './ThreadHeader';
import { Timeline } from './Timeline';
import { useSend } from './useSend';
import { type Stop, useStop } from './useStop';

const route = getRouteApi('/frame/w/$workspace/chat/$thread');

export function ThreadPane() {
  const { thread } = route.useParams();
  const query = useQuery(threadQuery(thread));
  const isGone = query.error instanceof Failure && query.error.status === 404;
  if (isGone) return <NoThread />;
  return (
    <div className={styles.thread}>
      {query.data ? (
        <Shown key={thread} thread={query.data} />
      ) : (
        <div className={styles.pad}>
          <Loaded query={query}>{() => null}</Loaded>
        </div>
      )}
    </div>
  );
}

function NoThread() {
  const { workspace } = route.useParams();
  return (
    <div className={styles.pad}>
      <Notice tone="warn" title="There is no such thread">
        It was deleted, or whoever owns it does not share it with you.{' '}
        <Anchor component={Link} underline="always" to={`/w/${workspace}/chat`}>
          Begin a new thread
        </Anchor>
      </Notice>
    </div>
  );
}

function Shown({ thread }: { thread: Thread }) {
  const { user } = useSession();
  const { state, link, earlier } = useThread(thread.id, user.id);
  useReadAgain(thread, state);
  const isRead = state.seq >= thread.last_seq || state.items.length > 0;
  const running = runningReply(state);
  const stop = useStop(thread, running);
  const title = state.changed?.title ?? thread.title;
  useEffect(() => {
    document.title = `${title} · Glovebox`;
  }, [title]);
  return (
    <>
      <ThreadHeader thread={thread} title={title} />
      <ConnectionNotice link={link} />
      <VisuallyHidden role="status">{announcement(state)}</VisuallyHidden>
      <Timeline
        thread={thread}
        state={state}
        earlier={earlier}
        isLoading={!isRead && link !== 'gone'}
        running={running}
        stop={stop}
      />
      {thread.may_write && link !== 'gone' && (
        <Write
          thread={thread}
          isBusy={isRead ? running !== null : Boolean(thread.running_reply)}
          stop={stop}
        />
      )}
      {!thread.may_write && (
        <div className={styles.pad}>
          <Notice tone="info" title="You can read this thread">
            Editors and up write in shared threads. An admin of the workspace gives the role.
          </Notice>
        </div>
      )}
    </>
  );
}

/** What others see of the thread is read again when it has another title, or something ended. */
function useReadAgain({ id, workspace_id }: Thread, { changed, replies }: ThreadState) {
  const queries = useQueryClient();
  const ended = Object.values(replies).filter(({ end }) => end !== null).length;
  const files = Object.values(replies).reduce((sum, reply) => sum + reply.files.length, 0);
  useEffect(() => {
    void queries.invalidateQueries(threadQuery(id));
    void queries.invalidateQueries({ queryKey: threadsKey(workspace_id) });
  }, [queries, id, workspace_id, changed, ended]);
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: artifactsKey(workspace_id) });
    // A new version of a file that is looked at.
    void queries.invalidateQueries({ queryKey: ['artifact'] });
  }, [queries, workspace_id, files]);
}

function ConnectionNotice({ link }: { link: StreamLink }) {
  if (link === 'lost') {
    return (
      <Notice tone="warn" title="The connection is lost">
        What you see is the last that arrived. It goes on by itself as soon as the server answers.
      </Notice>
    );
  }
  if (link === 'asking') {
    return (
      <Notice tone="info" title="There are too many live connections">
        The server gives no more of them just now, so this page asks every few seconds what is new.
        Close pages with threads that you do not need.
      </Notice>
    );
  }
  if (link !== 'gone') return null;
  return (
    <Notice tone="warn" title="This thread is not there any more">
      It was deleted, or whoever owns it does not share it any more. What you see is the last that
      arrived.
    </Notice>
  );
}

interface WriteProps {
  thread: Thread;
  isBusy: boolean;
  stop: Stop | null;
}

function Write({ thread, isBusy, stop }: WriteProps) {
  const { user } = useSession();
  const chat = useQuery(chatQuery(thread.workspace_id));
  const queries = useQueryClient();
  const draftKey = `${user.id} ${thread.id}`;
  const send = useSend(
    draftKey,
    () => Promise.resolve(thread.id),
    () => void queries.invalidateQueries({ queryKey: threadsKey(thread.workspace_id) }),
  );
  return (
    <Loaded query={chat}>
      {(state) => (
        <Composer
          draftKey={draftKey}
          workspace={thread.workspace_id}
          chat={state}
          isBusy={isBusy}
          stop={stop}
          send={send}
        />
      )}
    </Loaded>
  );
}
