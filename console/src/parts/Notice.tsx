import type { ReactNode } from 'react';
import { Icon } from './Icon';
import styles from './Notice.module.css';

interface Props {
  tone: 'good' | 'warn' | 'bad' | 'info';
  title: string;
  children?: ReactNode;
}

/** Something that the person should know before going on. Bad news is read out at once. */
export function Notice({ tone, title, children }: Props) {
  return (
    <div
      className={`${styles.notice ?? ''} ${styles[tone] ?? ''}`}
      role={tone === 'bad' ? 'alert' : 'status'}
    >
      <span className={styles.sign}>
        <Icon name={tone} size={16} />
      </span>
      <div>
        <div className={styles.title}>{title}</div>
        {children}
      </div>
    </div>
  );
}
