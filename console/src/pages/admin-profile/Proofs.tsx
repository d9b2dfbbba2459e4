import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { type ProfileStep, useProfileStep } from '../../api/profile';
import type { ProfileDetail } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { FailureNote } from '../../parts/FailureNote';
import { Outcome } from '../../parts/Outcome';
import { State } from '../../parts/State';
import styles from './Proofs.module.css';

interface Props {
  detail: ProfileDetail;
  isLocked: boolean;
}

export function Proofs({ detail, isLocked }: Props) {
  return (
    <div className={styles.proofs}>
      <Proof
        id="test"
        name="Test"
        about="Looks at everything that sandboxes need on this runtime."
        state={<Outcome check={detail.test} />}
        step="test"
        action={detail.test ? 'Test again' : 'Run test'}
        {...{ detail, isLocked }}
      />
      <Proof
        id="canary"
        name="Canary"
        about="A throwaway sandbox tries to reach what none may reach. This takes some seconds."
        state={<Outcome check={detail.canary} />}
        step="canary"
        action={detail.canary ? 'Run canary again' : 'Run canary'}
        {...{ detail, isLocked }}
      />
      <Acknowledgement {...{ detail, isLocked }} />
    </div>
  );
}

function Acknowledgement({ detail, isLocked }: Props) {
  const given = detail.acknowledgements.find((one) => one.name === 'shared_kernel');
  return (
    <Proof
      id="acknowledgement"
      name="Shared kernel"
      about={
        'Sandboxes share the kernel of this machine: a hole in the kernel could let code out of ' +
        'its sandbox. Whoever activates this profile accepts that.'
      }
      state={
        given ? (
          <>
            <State tone="good">acknowledged</State> by {given.by}, <Ago at={given.at} />
          </>
        ) : (
          <State tone="warn">not acknowledged</State>
        )
      }
      step="acknowledge"
      action={given ? 'Acknowledge again' : 'Acknowledge shared kernel'}
      {...{ detail, isLocked }}
    />
  );
}

interface ProofProps extends Props {
  id: string;
  name: string;
  about: string;
  state: ReactNode;
  step: ProfileStep;
  action: string;
}

function Proof({ id, name, about, state, step, action, detail, isLocked }: ProofProps) {
  const take = useProfileStep(detail.profile.id, step);
  return (
    <div className={styles.proof} id={id}>
      <h3>{name}</h3>
      <p>{about}</p>
      <div role="status">{state}</div>
      <FailureNote error={take.error} />
      <Button
        variant="default"
        disabled={isLocked}
        loading={take.isPending}
        onClick={() => take.mutate()}
      >
        {action}
      </Button>
    </div>
  );
}
