import { Loader } from '@mantine/core';
import { took } from '../../format/time';
import { useNow } from '../../parts/useNow';
import { StopButton } from './StopButton';
import styles from './Thread.module.css';
import type { Stop } from './useStop';

interface Props {
  text: string;
  since: string;
  /** Ends it; nothing for those who may not. */
  stop: Stop | null;
}

/** What is being done now, for how long, and the way to end it. */
export function NowLine({ text, since, stop }: Props) {
  const now = useNow(1000);
  const seconds = Math.floor(Math.max(0, now - Date.parse(since)) / 1000);
  return (
    <div className={styles.now}>
      <Loader size={16} aria-hidden="true" />
      <span className={styles.doing}>{text}</span>
      <span className={styles.elapsed}>{seconds < 10 ? `${seconds} s` : took(seconds * 1000)}</span>
      {stop && <StopButton stop={stop} size="compact-sm" />}
    </div>
  );
}
