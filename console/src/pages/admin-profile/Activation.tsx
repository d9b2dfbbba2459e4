import { Button, Group } from '@mantine/core';
import { useState } from 'react';
import { useProfileStep } from '../../api/profile';
import type { ProfileDetail } from '../../api/views';
import { Confirm } from '../../parts/Confirm';
import { FailureNote } from '../../parts/FailureNote';
import { State } from '../../parts/State';
import styles from './Activation.module.css';

/** What activating takes, by the API's word for what is missing, and where it is done. */
const STEPS: readonly [string, string, string][] = [
  ['no_recent_test', 'A test that passed less than 24 hours ago', 'test'],
  ['no_recent_canary', 'A canary that passed less than 24 hours ago', 'canary'],
  ['ack_required', 'The shared kernel acknowledged', 'acknowledgement'],
];

interface Props {
  detail: ProfileDetail;
  isLocked: boolean;
}

export function Activation({ detail, isLocked }: Props) {
  const { profile, blockers } = detail;
  const step = useProfileStep(profile.id);
  const [isAsking, setAsking] = useState(false);
  const isActive = profile.state === 'active';
  const close = () => setAsking(false);
  return (
    <>
      <ul className={styles.list} aria-label="What activating takes">
        {STEPS.map(([blocker, text, where]) => (
          <li key={blocker}>
            {blockers.includes(blocker) ? (
              <>
                <State tone="warn">missing</State> <a href={`#${where}`}>{text}</a>
              </>
            ) : (
              <>
                <State tone="good">done</State> {text}
              </>
            )}
          </li>
        ))}
      </ul>
      {!isAsking && <FailureNote error={step.error} />}
      <Group>
        {isActive ? (
          <Button variant="default" disabled={isLocked} onClick={() => setAsking(true)}>
            Disable
          </Button>
        ) : (
          <Button
            disabled={isLocked || blockers.length > 0}
            loading={step.isPending}
            onClick={() => step.mutate('activate')}
          >
            Activate
          </Button>
        )}
      </Group>
      <Confirm
        isOpen={isAsking}
        title={`Disable ${profile.name}?`}
        action={`Disable ${profile.name}`}
        isBusy={step.isPending}
        error={step.error}
        onClose={close}
        onConfirm={() => step.mutate('disable', { onSuccess: close })}
      >
        No new sandboxes are made on it, and workspaces that use it are refused with{' '}
        <code>profile</code>. Sandboxes that run go on until their limits. It can be activated
        again.
      </Confirm>
    </>
  );
}
