import styles from './Meter.module.css';
import { State } from './State';

interface Props {
  name: string;
  used: number;
  limit: number;
  /** The whole reading in words, such as `1 of 2 sandboxes`. */
  text: string;
}

/** How much of a quota is used. */
export function Meter({ name, used, limit, text }: Props) {
  const isFull = used >= limit;
  const share = limit > 0 ? Math.min(100, (used / limit) * 100) : 100;
  return (
    <div>
      <div className={styles.name}>{name}</div>
      <div className={styles.value}>
        {text} {isFull && <State tone="warn">limit reached</State>}
      </div>
      <div className={styles.bar} aria-hidden="true">
        <div
          className={`${styles.fill ?? ''} ${isFull ? (styles.full ?? '') : ''}`}
          style={{ width: `${share}%` }}
        />
      </div>
    </div>
  );
}

interface LimitProps {
  name: string;
  text: string;
  /** What else is to be known of it. */
  note?: string;
}

/** A quota that has no meter. */
export function Limit({ name, text, note }: LimitProps) {
  return (
    <div>
      <div className={styles.name}>{name}</div>
      <div className={styles.value}>{text}</div>
      {note !== undefined && <div className={styles.name}>{note}</div>}
    </div>
  );
}

export const metersClass = styles.meters;
