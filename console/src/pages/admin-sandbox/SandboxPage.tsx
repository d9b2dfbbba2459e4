import { useQuery } from '@tanstack/react-query';
import { deploymentQuery, profilesQuery } from '../../api/queries';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { ReadOnly } from '../../parts/ReadOnly';
import { DeploymentForm } from './DeploymentForm';
import { ProfileTable } from './ProfileTable';

export function SandboxPage() {
  const deployment = useQuery(deploymentQuery);
  const profiles = useQuery(profilesQuery);
  return (
    <Page title="Sandbox" about="Whether code may run in this installation, and on what.">
      <Loaded query={deployment}>
        {(settings) => (
          <>
            <ReadOnly deployment={settings} />
            <Loaded query={profiles}>
              {(page) => (
                <>
                  <Panel title="Code execution">
                    <DeploymentForm deployment={settings} profiles={page.items} />
                  </Panel>
                  <Panel title="Runtime profiles">
                    <ProfileTable profiles={page.items} />
                  </Panel>
                </>
              )}
            </Loaded>
          </>
        )}
      </Loaded>
    </Page>
  );
}
