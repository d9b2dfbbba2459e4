import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { CheckRecord, ProfileDetail } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { type Column, DataTable } from '../../parts/DataTable';
import { NamedState, State } from '../../parts/State';

const Proof = ({ check }: { check: CheckRecord | null | undefined }) =>
  check ? (
    <>
      <State tone={check.is_passed ? 'good' : 'bad'}>{check.is_passed ? 'passed' : 'failed'}</State>{' '}
      <Ago at={check.taken_at} />
    </>
  ) : (
    <>never</>
  );

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
  { name: 'Last test', cell: (one) => <Proof check={one.test} /> },
  { name: 'Last canary', cell: (one) => <Proof check={one.canary} /> },
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
