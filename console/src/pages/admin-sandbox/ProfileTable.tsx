import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ProfileDetail } from '../../api/views';
import { type Column, DataTable } from '../../parts/DataTable';
import { Outcome } from '../../parts/Outcome';
import { NamedState, State } from '../../parts/State';

const columns: readonly Column<ProfileDetail>[] = [
  {
    name: 'Name',
    order: ({ profile }) => profile.name,
    cell: ({ profile, is_default }) => (
      <>
        <Anchor component={Link} to={`/admin/system/sandbox/${profile.id}`}>
          {profile.name}
        </Anchor>{' '}
        {is_default && <State tone="info">default</State>}
      </>
    ),
  },
  {
    name: 'Runtime',
    cell: ({ profile }) => profile.runtime,
    order: ({ profile }) => profile.runtime,
  },
  {
    name: 'State',
    cell: ({ profile }) => <NamedState name={profile.state} />,
    order: ({ profile }) => profile.state,
  },
  {
    name: 'Isolation',
    cell: (one) =>
      one.acknowledgements_required.includes('shared_kernel') && (
        <State tone="warn">shared kernel</State>
      ),
  },
  { name: 'Last test', cell: (one) => <Outcome check={one.test} /> },
  { name: 'Last canary', cell: (one) => <Outcome check={one.canary} /> },
];

export const ProfileTable = ({ profiles }: { profiles: readonly ProfileDetail[] }) => (
  <DataTable
    label="runtime profiles"
    rows={profiles}
    rowKey={({ profile }) => profile.id}
    columns={columns}
    empty="No profiles yet. The server makes one for its own machine when it starts."
  />
);
