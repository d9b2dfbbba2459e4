import type { ReactNode } from 'react';
import { lastFailure, runText, stepsOf } from '../../chat/telling';
import type { Run } from '../../chat/view';
import { Fold } from '../../parts/Fold';
import { Notice } from '../../parts/Notice';
import { sentence } from '../../format/sentence';
import { EndASandbox } from './EndASandbox';
import { StepBlock } from './StepBlock';
import styles from './Thread.module.css';

interface Props {
  run: Run;
  isCode: boolean;
  /** The line that says what is being done; nothing where it is over. */
  now: ReactNode;
}

/** Steps that follow each other, out of the way until somebody wants to see them. */
export function RunBlock({ run, isCode, now }: Props) {
  const steps = stepsOf(run).length;
  const isOver = now === false;
  const failure = isOver ? lastFailure(run) : null;
  const notices = run.lines.flatMap((line) => (line.kind === 'notice' ? [line.notice] : []));
  return (
    <div className={styles.run}>
      {now}
      {notices.map((notice, index) => (
        <Notice key={index} tone="info" title={sentence(notice.text)}>
          {notice.fix && sentence(notice.fix)}
        </Notice>
      ))}
      {/* Where the steps are open it stands there. */}
      {failure && !isCode && (
        <div>
          {sentence(failure.summary)} {failure.fix !== null && sentence(failure.fix)}
          <EndASandbox code={failure.code} />
        </div>
      )}
      <Fold
        head={isOver ? runText(run) : steps === 1 ? '1 step so far' : `${steps} steps so far`}
        // Who typed the code wants to see what it printed.
        isOpenAtFirst={isCode}
      >
        <ol className={styles.lines}>
          {run.tasks.map((task, index) => (
            <li key={`task ${index}`} className={styles.plan}>
              Handed over: {task}
            </li>
          ))}
          {run.lines.map((line, index) =>
            line.kind === 'notice' ? null : (
              <li key={index}>
                {line.kind === 'plan' ? (
                  <span className={styles.plan}>{line.text}</span>
                ) : (
                  <StepBlock step={line.step} isCode={isCode} />
                )}
              </li>
            ),
          )}
        </ol>
      </Fold>
    </div>
  );
}
