import type { CodeExecution } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { type Column, DataTable } from '../../parts/DataTable';

type Denial = CodeExecution['denials'][number];

/** What each denial of the gate means for the person it met, and what to do. */
const MEANINGS: Record<string, string> = {
  deployment: 'Code execution is off for the whole installation. A system admin switches it on.',
  profile: 'The runtime profile is missing or not active. A system admin activates one.',
  workspace: 'Code execution was off in this workspace. A system admin switches it on.',
  role: 'The role or the key may not run code. An admin of the workspace gives the role editor.',
  'quota:max_concurrent': 'All sandboxes at once are in use. End one, or wait until one ends.',
  'quota:max_resource_class':
    'A larger sandbox was asked for than is allowed. Ask for a smaller one.',
  'quota:max_job_seconds': 'A longer job was asked for than is allowed. Ask for a shorter one.',
  'quota:max_artifact_bytes_per_day':
    'The files of today are at their limit. Wait for midnight UTC.',
  'quota:max_jobs_per_hour': 'Too many new sandboxes in an hour. Use one that is there, or wait.',
};

const columns: readonly Column<Denial>[] = [
  { name: 'Denial', cell: (denial) => <code>{denial.name}</code> },
  { name: 'What it means', cell: (denial) => MEANINGS[denial.name] ?? '' },
  { name: 'Who', cell: (denial) => denial.actor },
  { name: 'When', cell: (denial) => <Ago at={denial.at} /> },
];

export const Denials = ({ denials }: { denials: readonly Denial[] }) => (
  <DataTable
    label="last denials"
    rows={denials}
    rowKey={(denial) => `${denial.at} ${denial.name} ${denial.actor}`}
    columns={columns}
    empty="Nobody was refused. When somebody is, the reason stands here."
  />
);
