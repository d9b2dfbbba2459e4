import type { ReactNode } from 'react';
import styles from './Gate.module.css';

/** The narrow page of those who are not in yet. */
export const Gate = ({ children }: { children: ReactNode }) => (
  <main className={styles.gate}>{children}</main>
);
