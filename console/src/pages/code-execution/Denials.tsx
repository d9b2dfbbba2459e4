import { meaningOf } from '../../api/denials';
import type { CodeExecution } from '../../api/views';
import { Ago } from '../../parts/Ago';
import { type Column, DataTable } from '../../parts/DataTable';
import { sentence } from '../../format/sentence';

type Denial = CodeExecution['denials'][number];

const columns: readonly Column<Denial>[] = [
  { name: 'Denial', cell: (denial) => <code>{denial.name}</code> },
  { name: 'What it means', cell: (denial) => sentence(meaningOf(denial.name)?.message ?? '') },
  { name: 'What to do', cell: (denial) => sentence(meaningOf(denial.name)?.fix ?? '') },
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
