import styles from './CodeBlock.module.css';
import { CopyButton } from './CopyButton';

interface Props {
  text: string;
  /** What it is, such as `Python` or `Output`. */
  what: string;
}

/** Lines of code or output, with a way to copy them. */
export const CodeBlock = ({ text, what }: Props) => (
  <div className={styles.block}>
    <div className={styles.bar}>
      <span>{what}</span>
      <CopyButton text={text} what={what} />
    </div>
    <pre className={styles.code} tabIndex={0} role="region" aria-label={what}>
      {text}
    </pre>
  </div>
);
