import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { deploymentQuery, profileQuery } from '../../api/queries';
import type { ProfileDetail } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { CopyText } from '../../parts/CopyText';
import { FailureNote } from '../../parts/FailureNote';
import { Loaded } from '../../parts/Loaded';
import { Facts, Page, Panel } from '../../parts/Page';
import { ReadOnly } from '../../parts/ReadOnly';
import { NamedState, State } from '../../parts/State';
import { useVersionedDraft } from '../../parts/useVersionedDraft';
import { Activation } from './Activation';
import { AttemptTable, CheckTable } from './Reports';
import { Proofs } from './Proofs';
import { draftOf, SettingsForm } from './SettingsForm';

const route = getRouteApi('/frame/admin/admin/system/sandbox/$profile');

export function ProfilePage() {
  const { profile } = route.useParams();
  const query = useQuery(profileQuery(profile));
  const deployment = useQuery(deploymentQuery);
  const isLocked = deployment.data?.is_locked ?? false;
  return (
    <Page
      title={query.data?.profile.name ?? 'Runtime profile'}
      about="What has to be proven before sandboxes are made on it, and how they are made."
    >
      {deployment.data ? (
        <ReadOnly deployment={deployment.data} />
      ) : (
        <FailureNote error={deployment.error} />
      )}
      <Loaded query={query}>
        {(detail) => <Shown key={profile} detail={detail} isLocked={isLocked} />}
      </Loaded>
    </Page>
  );
}

function Shown({ detail, isLocked }: { detail: ProfileDetail; isLocked: boolean }) {
  const { profile } = detail;
  // Activating and disabling count the version of the settings on.
  const draft = useVersionedDraft(draftOf(detail));
  return (
    <>
      <Panel title="Overview">
        <Facts
          rows={[
            ['Runtime', profile.runtime],
            [
              'State',
              <span key="state">
                <NamedState name={profile.state} />{' '}
                {detail.is_default && <State tone="info">default</State>}
              </span>,
            ],
            ['Activated', profile.activated_at ? <Ago at={profile.activated_at} /> : 'never'],
            ['Id', <CopyText key="id" text={profile.id} what="profile id" />],
          ]}
        />
        <Activation detail={detail} isLocked={isLocked} onChanged={draft.goOn} />
      </Panel>
      <Panel title="Proofs">
        <Proofs detail={detail} isLocked={isLocked} />
      </Panel>
      {detail.test && (
        <Panel title="Checks of the last test">
          <CheckTable record={detail.test} />
        </Panel>
      )}
      {detail.canary && (
        <Panel title="Attempts of the last canary">
          <AttemptTable record={detail.canary} />
        </Panel>
      )}
      <Panel title="Settings">
        <SettingsForm detail={detail} draft={draft} isLocked={isLocked} />
      </Panel>
    </>
  );
}
