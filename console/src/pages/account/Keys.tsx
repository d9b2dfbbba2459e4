import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { keysQuery } from '../../api/queries';
import { type ApiKey, mayRunCode, roleOf } from '../../api/views';
import { useSession } from '../../frame/useSession';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Panel } from '../../parts/Page';
import { RowMenu } from '../../parts/RowMenu';
import { CreateKey } from './CreateKey';
import { RevokeKey } from './RevokeKey';

const route = getRouteApi('/frame/account');

export function Keys() {
  const { memberships } = useSession();
  const { workspace = memberships[0]?.workspace_id } = route.useSearch();
  const navigate = route.useNavigate();
  const membership = memberships.find((one) => one.workspace_id === workspace);
  const role = roleOf(membership?.role ?? '');
  if (workspace === undefined) {
    return (
      <Panel title="API keys">
        A key belongs to a workspace, and you belong to none yet. An admin of one adds you.
      </Panel>
    );
  }
  return (
    <Panel title="API keys">
      <NativeSelect
        label="Workspace"
        maw={320}
        value={workspace}
        data={memberships.map((one) => ({ value: one.workspace_id, label: one.name }))}
        onChange={(event) =>
          void navigate({ search: { workspace: event.currentTarget.value }, replace: true })
        }
      />
      {mayRunCode(role) ? (
        <CreateKey key={workspace} workspace={workspace} />
      ) : (
        <p>
          Viewers make no keys: a key acts with the role of whoever makes it. An admin of the
          workspace gives the role editor.
        </p>
      )}
      <KeyTable workspace={workspace} />
    </Panel>
  );
}

function KeyTable({ workspace }: { workspace: string }) {
  const query = useQuery(keysQuery(workspace));
  const { user } = useSession();
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const owner = (key: ApiKey) =>
    !key.user_id ? 'a service' : key.user_id === user.id ? 'you' : 'another member';
  const columns: Column<ApiKey>[] = [
    { name: 'Name', cell: (key) => key.name },
    { name: 'Acts as', cell: owner },
    { name: 'Scopes', cell: (key) => <code>{key.scopes.join(', ')}</code> },
    { name: 'Made', cell: (key) => <Ago at={key.created_at} /> },
    { name: 'Last used', cell: (key) => (key.used_at ? <Ago at={key.used_at} /> : 'never') },
    {
      name: ACTIONS,
      cell: (key) => (
        <RowMenu
          of={key.name}
          actions={[
            { label: `Revoke ${key.name}`, isDangerous: true, onClick: () => setRevoking(key) },
          ]}
        />
      ),
    },
  ];
  return (
    <>
      <Loaded query={query}>
        {(page) => (
          <DataTable
            label="API keys"
            rows={page.items}
            rowKey={(key) => key.id}
            columns={columns}
            empty="No keys yet. A program signs its calls with one."
          />
        )}
      </Loaded>
      {revoking && (
        <RevokeKey workspace={workspace} apiKey={revoking} onClose={() => setRevoking(null)} />
      )}
    </>
  );
}
