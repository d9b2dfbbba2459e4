import { lazy, Suspense } from 'react';
import styles from './Markdown.module.css';

/** What reads markdown is large, and of no use before somebody has written some. */
const Read = lazy(async () => ({ default: (await import('./MarkdownText')).MarkdownText }));

/** Markdown of a model or a program; as it was written until it can be read. */
export const Markdown = ({ text }: { text: string }) => (
  <Suspense
    fallback={<div className={`${styles.markdown ?? ''} ${styles.plain ?? ''}`}>{text}</div>}
  >
    <Read text={text} />
  </Suspense>
);
