import { useClipboard } from '@mantine/hooks';
import styles from './CopyText.module.css';
import { Icon } from './Icon';

interface Props {
  text: string;
  /** What it is, for those who do not see where it stands. */
  what: string;
  /** What is shown of a long one. */
  shown?: string;
}

/** An id or a code in monospace that a click copies. */
export function CopyText({ text, what, shown = text }: Props) {
  const clipboard = useClipboard({ timeout: 1500 });
  // Over plain HTTP browsers do not let pages copy: then all of it is there to be selected.
  if (clipboard.error !== null) return <code className={styles.whole}>{text}</code>;
  return (
    <button
      type="button"
      className={styles.copy}
      title={text}
      // Whoever speaks to the browser says what is to be seen.
      aria-label={clipboard.copied ? `copied: ${what}` : `Copy ${what} ${shown}`}
      onClick={() => clipboard.copy(text)}
    >
      <span>{clipboard.copied ? 'copied' : shown}</span>
      <Icon name={clipboard.copied ? 'good' : 'copy'} size={12} />
    </button>
  );
}
