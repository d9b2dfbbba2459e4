import { asFailure } from '../api/failure';
import { CopyText } from './CopyText';
import styles from './FailureNote.module.css';
import { Notice } from './Notice';
import { sentence } from '../format/sentence';

/** The one shape of errors: what went wrong, what to do, and what to tell an administrator. */
export function FailureNote({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const failure = asFailure(error);
  return (
    <Notice tone="bad" title={sentence(failure.message)}>
      <div>{sentence(failure.fix)}</div>
      <div className={styles.codes}>
        <CopyText text={failure.code} what="code" />
        {failure.requestId !== null && <CopyText text={failure.requestId} what="request id" />}
      </div>
    </Notice>
  );
}
