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
  /** Called with the version that was changed and the one that came of it. */
  onChanged: (from: number, to: number) => void;
}

export function Activation({ detail, isLocked, onChanged }: Props) {
  const { profile, blockers } = detail;
  const activate = useProfileStep(profile.id, 'activate', changed(detail, onChanged));
  const [isAsking, setAsking] = useState(false);
  const isActive = profile.state === 'active';
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
      <FailureNote error={activate.error} />
      <Group>
        {isActive ? (
          <Button variant="default" disabled={isLocked} onClick={() => setAsking(true)}>
            Disable
          </Button>
        ) : (
          <Button
            disabled={isLocked || blockers.length > 0}
            loading={activate.isPending}
            onClick={() => activate.mutate()}
          >
            Activate
          </Button>
        )}
      </Group>
      {isAsking && <DisableProfile {...{ detail, onChanged }} onClose={() => setAsking(false)} />}
    </>
  );
}

const changed =
  ({ profile }: ProfileDetail, tell: Props['onChanged']) =>
  (taken: ProfileDetail) =>
    tell(profile.version, taken.profile.version);

type DisableProps = Omit<Props, 'isLocked'> & { onClose: () => void };

function DisableProfile({ detail, onChanged, onClose }: DisableProps) {
  const { id, name } = detail.profile;
  const disable = useProfileStep(id, 'disable', changed(detail, onChanged));
  return (
    <Confirm
      title={`Disable ${name}?`}
      action={`Disable ${name}`}
      change={disable}
      onClose={onClose}
    >
      No new sandboxes are made on it, and workspaces that use it are refused with{' '}
      <code>profile</code>. Sandboxes that run go on until their limits. It can be activated again.
    </Confirm>
  );
}
