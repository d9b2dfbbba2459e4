import { Button, NativeSelect, Stack, Switch } from '@mantine/core';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { deploymentQuery, profilesQuery } from '../../api/queries';
import type { Deployment, ProfileDetail } from '../../api/views';
import { DenialNotice } from '../../parts/DenialNotice';
import { FailureNote } from '../../parts/FailureNote';
import { Fields } from '../../parts/Fields';

interface Props {
  deployment: Deployment;
  profiles: readonly ProfileDetail[];
}

interface Wish {
  code_execution?: boolean;
  default_profile_id?: string;
}

export function DeploymentForm({ deployment, profiles }: Props) {
  const change = useChange(
    (body: Wish) => answer(api.PATCH('/api/v1/admin/sandbox', { body })),
    [deploymentQuery.queryKey, profilesQuery.queryKey],
  );
  const active = profiles.filter((one) => one.profile.state === 'active');
  const present = deployment.default_profile_id ?? '';
  const isOn = deployment.code_execution;
  const reason = whyNot(deployment, active.length > 0);
  // Off can be said whatever is locked.
  const isSwitchLocked = change.isPending || (deployment.is_locked && !isOn);
  const isChoiceLocked = change.isPending || deployment.is_locked;
  return (
    <>
      {isOn && !deployment.is_forced_off && deployment.denial && (
        <DenialNotice denial={deployment.denial} />
      )}
      <FailureNote error={change.error} />
      <Fields>
        <Switch
          label="Code execution"
          description={
            isOn
              ? 'Workspaces that are switched on may run code.'
              : (reason ?? 'No code runs. Switch it on when you are ready.')
          }
          checked={isOn}
          disabled={isSwitchLocked || (!isOn && reason !== null)}
          onChange={(event) => change.mutate({ code_execution: event.currentTarget.checked })}
        />
        <DefaultProfile
          // One that was chosen elsewhere meanwhile is the one to go on from.
          key={present}
          present={present}
          profiles={profiles}
          isLocked={isChoiceLocked || active.length === 0}
          onChoose={(id) => change.mutate({ default_profile_id: id })}
        />
      </Fields>
    </>
  );
}

interface DefaultProps {
  /** The id of the one that is the default; empty where none is. */
  present: string;
  profiles: readonly ProfileDetail[];
  isLocked: boolean;
  onChoose: (profile: string) => void;
}

/** Another default is chosen and then made: nothing happens while somebody goes through the list. */
function DefaultProfile({ present, profiles, isLocked, onChoose }: DefaultProps) {
  const [chosen, setChosen] = useState(present);
  return (
    <Stack gap="xs" align="flex-start">
      <NativeSelect
        label="Default profile"
        description="For workspaces that have no profile of their own"
        value={chosen}
        disabled={isLocked}
        data={[
          ...(present === '' ? [{ value: '', label: 'None' }] : []),
          ...profiles
            .filter((one) => one.profile.state === 'active' || one.profile.id === present)
            .map(({ profile }) => ({ value: profile.id, label: profile.name })),
        ]}
        onChange={(event) => setChosen(event.currentTarget.value)}
      />
      <Button
        size="xs"
        variant="default"
        disabled={isLocked || chosen === present || chosen === ''}
        onClick={() => onChoose(chosen)}
      >
        Make it the default
      </Button>
    </Stack>
  );
}

/** Why code execution cannot be switched on now. */
function whyNot(deployment: Deployment, hasActive: boolean): string | null {
  if (deployment.is_forced_off) return 'It is forced off by the environment of the server.';
  if (deployment.default_profile_id) return null;
  return hasActive
    ? 'Choose a default profile first.'
    : 'Activate a profile first: open it below. Then make it the default.';
}
