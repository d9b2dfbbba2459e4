import { Button } from '@mantine/core';
import { memo, type ReactNode } from 'react';
import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { retryMessage, threadsKey } from '../../api/threads';
import { endsInFailure, nowText, wordsOf } from '../../chat/telling';
import type { Part, Reply } from '../../chat/view';
import { CopyButton } from '../../parts/CopyButton';
import { CopyText } from '../../parts/CopyText';
import { ErrorBoundary } from '../../parts/ErrorBoundary';
import { FailureNote } from '../../parts/FailureNote';
import { Fold } from '../../parts/Fold';
import { Icon } from '../../parts/Icon';
import { Markdown } from '../../parts/Markdown';
import { Notice } from '../../parts/Notice';
import { sentence } from '../../format/sentence';
import { EndASandbox } from './EndASandbox';
import { FileCards } from './FileCard';
import { NowLine } from './NowLine';
import { RunBlock } from './RunBlock';
import styles from './Thread.module.css';
import type { Stop } from './useStop';

interface Props {
  thread: Thread;
  reply: Reply;
  /** Whether it runs Python that a person typed. */
  isCode: boolean;
  mayRetry: boolean;
  /** Ends it; nothing where it has ended, or for those who may not. */
  stop: Stop | null;
}

/** What came of a message: words, runs of code, files, and how it ended. */
export const ReplyBlock = memo(function ReplyBlock(props: Props) {
  const { thread, reply, isCode, mayRetry, stop } = props;
  const { parts, files, end } = reply;
  const isRunning = end === null;
  const now = isRunning && <NowLine text={nowText(reply)} since={reply.startedAt} stop={stop} />;
  const isLastRun = parts.at(-1)?.kind === 'run';
  return (
    <article className={styles.reply} aria-label="Reply" aria-busy={isRunning}>
      {parts.map((part, index) => (
        <ErrorBoundary key={index} fallback={unshown}>
          <PartBlock
            part={part}
            isCode={isCode}
            now={isLastRun && index === parts.length - 1 && now}
          />
        </ErrorBoundary>
      ))}
      {!isLastRun && now}
      <FailureNote error={stop?.error} />
      <FileCards files={files} />
      <Copy reply={reply} />
      <Ending thread={thread} reply={reply} mayRetry={mayRetry} />
    </article>
  );
});

/** In the place of a part that could not be shown: it is kept, so it would fail each time. */
const unshown = <Notice tone="info" title="A part of this reply cannot be shown here." />;

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

/** The way to take the words of a reply along, as they were written. */
function Copy({ reply }: { reply: Reply }) {
  const words = wordsOf(reply);
  if (reply.end === null || words === '') return null;
  return (
    <div>
      <CopyButton text={words} what="answer" isNamed />
    </div>
  );
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
