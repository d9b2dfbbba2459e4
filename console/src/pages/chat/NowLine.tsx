import { Button, Loader } from '@mantine/core';
import type { PlainChange } from '../../api/change';
import { took } from '../../format/time';
import { Icon } from '../../parts/Icon';
import { useNow } from '../../parts/useNow';
import styles from './Thread.module.css';

interface Props {
  text: string;
  since: string;
  /** Ends it; nothing for those who may not. */
  stop: PlainChange | null;
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
      {stop && (
        <Button
          size="compact-sm"
          variant="default"
          loading={stop.isPending}
          leftSection={<Icon name="stop" size={12} />}
          onClick={() => stop.mutate()}
        >
          Stop
        </Button>
      )}
    </div>
  );
}
