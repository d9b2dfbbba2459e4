import { type ReactNode, useId, useState } from 'react';
import styles from './Fold.module.css';
import { Icon } from './Icon';

interface Props {
  /** The line that is always seen. */
  head: ReactNode;
  isOpenAtFirst?: boolean;
  children: ReactNode;
}

/** Something that is out of the way until it is asked for. */
export function Fold({ head, isOpenAtFirst = false, children }: Props) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const id = useId();
  return (
    <div className={styles.fold}>
      <button
        type="button"
        className={styles.head}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={styles.sign}>
          <Icon name={isOpen ? 'down' : 'right'} size={12} />
        </span>
        {head}
      </button>
      <div id={id} hidden={!isOpen} className={styles.body}>
        {isOpen && children}
      </div>
    </div>
  );
}
