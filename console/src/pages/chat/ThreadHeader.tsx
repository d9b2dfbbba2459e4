import { Title } from '@mantine/core';
import { useState } from 'react';
import type { Thread } from '../../api/views';
import { RowMenu } from '../../parts/RowMenu';
import { State } from '../../parts/State';
import { DeleteThread } from './DeleteThread';
import { RenameThread } from './RenameThread';
import { ShareThread } from './ShareThread';
import styles from './Thread.module.css';

type Asked = 'rename' | 'share' | 'delete';

/** What a thread is called, who reads it, and what its owner can do with it. */
export function ThreadHeader({ thread, title }: { thread: Thread; title: string }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const close = () => setAsked(null);
  const { is_shared, is_own, may_change, owner } = thread;
  return (
    <div className={styles.head}>
      <Title order={1}>{title}</Title>
      {!is_own && <span className={styles.about}>Begun by {owner.name}</span>}
      <State tone={is_shared ? 'info' : 'idle'}>{is_shared ? 'shared' : 'private'}</State>
      {may_change && (
        <RowMenu
          of={title}
          actions={[
            { label: 'Rename', onClick: () => setAsked('rename') },
            {
              label: is_shared ? 'Make private' : 'Share with the workspace',
              onClick: () => setAsked('share'),
            },
            { label: 'Delete', isDangerous: true, onClick: () => setAsked('delete') },
          ]}
        />
      )}
      {asked === 'rename' && <RenameThread thread={thread} onClose={close} />}
      {asked === 'share' && <ShareThread thread={thread} onClose={close} />}
      {asked === 'delete' && <DeleteThread thread={thread} onClose={close} />}
    </div>
  );
}
