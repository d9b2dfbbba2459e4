import { useLayoutEffect, useRef } from 'react';
import styles from './CodeBlock.module.css';
import { CopyButton } from './CopyButton';

/** How near to the end counts as there, in pixels. */
const NEAR = 24;

interface Props {
  text: string;
  /** What it is, such as `Python` or `Output`. */
  what: string;
  /** Whether it grows: then its end stays in sight, unless somebody has gone up to read. */
  isLive?: boolean;
}

/** Lines of code or output, with a way to copy them. */
export function CodeBlock({ text, what, isLive = false }: Props) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const { current } = box;
    if (isLive && isAtEnd.current && current) current.scrollTop = current.scrollHeight;
  }, [isLive, text]);
  return (
    <div className={styles.block}>
      <div className={styles.bar}>
        <span>{what}</span>
        <CopyButton text={text} what={what} />
      </div>
      <pre
        ref={box}
        className={styles.code}
        tabIndex={0}
        role="region"
        aria-label={what}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
        }}
      >
        {text}
      </pre>
    </div>
  );
}
