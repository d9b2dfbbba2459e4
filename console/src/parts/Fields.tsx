import type { ReactNode } from 'react';
import styles from './Fields.module.css';

/** Fields side by side where there is room. */
export const Fields = ({ children }: { children: ReactNode }) => (
  <div className={styles.fields}>{children}</div>
);
