import { lazy, Suspense, useMemo } from 'react';
import { ErrorBoundary } from './ErrorBoundary';
import styles from './Markdown.module.css';
import { isReadable } from './markdownLimits';

/** What reads markdown is large, and of no use before somebody has written some. */
const Read = lazy(async () => ({ default: (await import('./MarkdownText')).MarkdownText }));

/**
 * Markdown of a model or a program; as it was written until it can be read, and where it cannot:
 * nobody has made it so that it can.
 */
export function Markdown({ text }: { text: string }) {
  const reads = useMemo(() => isReadable(text), [text]);
  const plain = <div className={`${styles.markdown ?? ''} ${styles.plain ?? ''}`}>{text}</div>;
  if (!reads) return plain;
  return (
    <ErrorBoundary fallback={plain}>
      <Suspense fallback={plain}>
        <Read text={text} />
      </Suspense>
    </ErrorBoundary>
  );
}
