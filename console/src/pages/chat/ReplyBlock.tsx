import { Button } from '@mantine/core';
import { memo, type ReactNode } from 'react';
import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { retryMessage, stopReply, threadsKey } from '../../api/threads';
import { endsInFailure, nowText } from '../../chat/telling';
import type { Part, Reply } from '../../chat/view';
import { CopyText } from '../../parts/CopyText';
import { FailureNote } from '../../parts/FailureNote';
import { Fold } from '../../parts/Fold';
import { Icon } from '../../parts/Icon';
import { Markdown } from '../../parts/Markdown';
import { Notice } from '../../parts/Notice';
import { sentence } from '../../parts/sentence';
import { EndASandbox } from './EndASandbox';
import { FileCards } from './FileCard';
import { NowLine } from './NowLine';
import { RunBlock } from './RunBlock';
import styles from './Thread.module.css';

interface Props {
  thread: Thread;
  reply: Reply;
  /** Whether it runs Python that a person typed. */
  isCode: boolean;
  mayRetry: boolean;
}

/** What came of a message: words, runs of code, files, and how it ended. */
export const ReplyBlock = memo(function ReplyBlock({ thread, reply, isCode, mayRetry }: Props) {
  const { parts, files, end } = reply;
  const isRunning = end === null;
  const stop = useChange(() => stopReply(thread.id, reply.id), [threadsKey(thread.workspace_id)]);
  const now = isRunning && (
    <NowLine text={nowText(reply)} since={reply.startedAt} stop={thread.may_write ? stop : null} />
  );
  const isLastRun = parts.at(-1)?.kind === 'run';
  return (
    <article className={styles.reply} aria-label="Reply" aria-busy={isRunning}>
      {parts.map((part, index) => (
        <PartBlock
          key={index}
          part={part}
          isCode={isCode}
          now={isLastRun && index === parts.length - 1 && now}
        />
      ))}
      {!isLastRun && now}
      <FailureNote error={stop.error} />
      <FileCards files={files} />
      <Ending thread={thread} reply={reply} mayRetry={mayRetry} />
    </article>
  );
});

interface PartProps {
  part: Part;
  isCode: boolean;
  /** The line that says what is being done, where it is done in this part. */
  now: ReactNode;
}

function PartBlock({ part, isCode, now }: PartProps) {
  switch (part.kind) {
    case 'text':
      return <Markdown text={part.text} />;
    case 'run':
      return <RunBlock run={part.run} isCode={isCode} now={now} />;
    case 'notice':
      return (
        <Notice tone="info" title={sentence(part.notice.text)}>
          {part.notice.fix && sentence(part.notice.fix)}
        </Notice>
      );
  }
}

type EndingProps = Pick<Props, 'thread' | 'reply' | 'mayRetry'>;

/** Says that a reply did not come to its end, why, and what can be done. */
function Ending({ thread, reply, mayRetry }: EndingProps) {
  const { end } = reply;
  const retry = useChange(
    () => retryMessage(thread.id, reply.replyTo),
    [threadsKey(thread.workspace_id)],
  );
  if (end === null) return null;
  const again = mayRetry && (
    <Button
      size="xs"
      variant="default"
      loading={retry.isPending}
      leftSection={<Icon name="again" size={12} />}
      onClick={() => retry.mutate()}
    >
      Try again
    </Button>
  );
  if (end.outcome === 'done') {
    if (!again || !endsInFailure(reply)) return null;
    return (
      <div className={styles.now}>
        {again}
        <FailureNote error={retry.error} />
      </div>
    );
  }
  if (end.outcome === 'stopped') {
    return (
      <div className={styles.now}>
        <span>Stopped. What was done until then stays.</span>
        {again}
        <FailureNote error={retry.error} />
      </div>
    );
  }
  const { error } = end;
  return (
    <>
      <Notice tone="bad" title={sentence(error?.message ?? 'The reply could not go on')}>
        {error?.fix && <div>{sentence(error.fix)}</div>}
        <EndASandbox code={error?.code} />
        <div className={styles.now}>{again}</div>
        {error && (
          <Fold head="Detail">
            <CopyText text={error.code} what="code" /> <CopyText text={reply.id} what="reply id" />
          </Fold>
        )}
      </Notice>
      <FailureNote error={retry.error} />
    </>
  );
}
