import { Button } from '@mantine/core';
import { useEffect } from 'react';
import type { Thread } from '../../api/views';
import type { Earlier } from '../../chat/useThread';
import type { Item, Reply, ThreadState } from '../../chat/view';
import { useSession } from '../../frame/useSession';
import { sentence } from '../../format/sentence';
import { FailureNote } from '../../parts/FailureNote';
import { Notice } from '../../parts/Notice';
import { FileCards } from './FileCard';
import { KeepPlace } from './KeepPlace';
import { MessageBlock } from './MessageBlock';
import { ReplyBlock } from './ReplyBlock';
import styles from './Thread.module.css';
import { useStickToEnd } from './useStickToEnd';
import type { Stop } from './useStop';

interface Props {
  thread: Thread;
  state: ThreadState;
  /** What was before it, where something was. */
  earlier: Earlier | null;
  isLoading: boolean;
  running: Reply | null;
  /** Ends what runs; nothing for those who may not. */
  stop: Stop | null;
}

/** Messages, replies and what else happened, oldest first. */
export function Timeline({ thread, state, earlier, isLoading, running, stop }: Props) {
  const { user } = useSession();
  const { scroll, content, isAtEnd, onScroll, onClickCapture, toEnd, measure, keepPlace } =
    useStickToEnd();
  const last = state.items.findLast((item) => item.kind === 'message');
  const ownLast = last?.author.user === user.id ? last.id : null;
  // Whoever sends something wants to see what comes of it, wherever they have read.
  useEffect(() => {
    if (ownLast !== null) toEnd();
  }, [ownLast, toEnd]);
  return (
    <div
      ref={scroll}
      className={styles.scroll}
      tabIndex={0}
      role="region"
      aria-label="Messages"
      onScroll={onScroll}
      onClickCapture={onClickCapture}
    >
      <div ref={content} className={styles.items}>
        {isLoading && <div role="status">Loading</div>}
        <KeepPlace cursor={earlier?.cursor} measure={measure} keep={keepPlace} />
        {earlier && <EarlierMessages earlier={earlier} />}
        {!isLoading && !earlier && state.items.length === 0 && (
          <div>Nothing was said here yet.</div>
        )}
        {state.items.map((item) => (
          <ItemBlock
            key={`${item.kind} ${item.id}`}
            item={item}
            thread={thread}
            state={state}
            running={running}
            stop={stop}
          />
        ))}
      </div>
      {!isAtEnd && (
        <div className={styles.newest}>
          <Button size="xs" variant="default" onClick={toEnd}>
            Go to the newest
          </Button>
        </div>
      )}
    </div>
  );
}

function EarlierMessages({ earlier }: { earlier: Earlier }) {
  return (
    <div>
      <Button size="xs" variant="default" loading={earlier.isAsked} onClick={earlier.ask}>
        Earlier messages
      </Button>
      <FailureNote error={earlier.error} />
    </div>
  );
}

interface ItemProps {
  item: Item;
  thread: Thread;
  state: ThreadState;
  running: Reply | null;
  stop: Stop | null;
}

function ItemBlock({ item, thread, state, running, stop }: ItemProps) {
  switch (item.kind) {
    case 'message':
      return <MessageBlock message={item} />;
    case 'reply': {
      const reply = state.replies[item.id];
      if (!reply) return null;
      const asked = state.items.findLast(({ kind }) => kind === 'message');
      const newest = state.items.findLast(({ kind }) => kind === 'reply');
      const isNewest = newest?.id === item.id && asked?.id === reply.replyTo;
      return (
        <ReplyBlock
          thread={thread}
          reply={reply}
          isCode={isCode(state, reply)}
          mayRetry={isNewest && thread.may_write && running === null}
          stop={running?.id === reply.id ? stop : null}
        />
      );
    }
    case 'notice':
      return (
        <Notice tone="info" title={sentence(item.notice.text)}>
          {item.notice.fix && sentence(item.notice.fix)}
        </Notice>
      );
    case 'saved':
      return (
        <div className={styles.reply}>
          <div className={styles.plan}>
            {item.file.restoredVersion === null
              ? `${item.file.name} was saved when the sandbox ended, as version ${item.file.version}.`
              : `Version ${item.file.restoredVersion} of ${item.file.name} was restored as version ${item.file.version}.`}
          </div>
          <FileCards files={[item.file]} />
        </div>
      );
  }
}

/** Whether the reply runs Python that a person typed. */
const isCode = (state: ThreadState, reply: Reply): boolean =>
  state.items.some(
    (item) => item.kind === 'message' && item.id === reply.replyTo && item.code === 'code',
  );
