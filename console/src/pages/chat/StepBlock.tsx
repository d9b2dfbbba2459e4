import { memo } from 'react';
import type { Step } from '../../chat/view';
import { bytes } from '../../format/bytes';
import { took } from '../../format/time';
import { CodeBlock } from '../../parts/CodeBlock';
import { Fold } from '../../parts/Fold';
import { sentence } from '../../format/sentence';
import { State } from '../../parts/State';
import { OutputView } from './OutputView';
import styles from './Thread.module.css';

/** One step: its code, what it showed, its files and how it ended. */
export const StepBlock = memo(function StepBlock({
  step,
  isCode,
}: {
  step: Step;
  isCode: boolean;
}) {
  const { number, code, output, files, end } = step;
  return (
    <section className={styles.step} aria-label={`Step ${number}`}>
      <div className={styles.stepHead}>
        <strong>Step {number}</strong>
        {end === null ? (
          <State tone="info">running</State>
        ) : (
          <State tone={end.isSuccess ? 'good' : 'bad'}>{end.isSuccess ? 'done' : 'failed'}</State>
        )}
        {end && <span className={styles.about}>{took(end.durationMs)}</span>}
      </div>
      {/* Of code that was typed the message shows it already. */}
      {!isCode && (
        <Fold head="Code">
          <CodeBlock text={code} what="Python" />
        </Fold>
      )}
      <OutputView output={output} isLive={end === null} />
      {files.length > 0 && (
        <div className={styles.names}>
          Saved{' '}
          {files
            .map((file) => `${file.name} (version ${file.version}, ${bytes(file.bytes)})`)
            .join(', ')}
        </div>
      )}
      {end && !end.isSuccess && (
        <div>
          {sentence(end.summary)} {end.fix !== null && sentence(end.fix)}
        </div>
      )}
    </section>
  );
});
