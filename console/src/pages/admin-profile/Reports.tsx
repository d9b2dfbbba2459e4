import { type Attempt, attemptsOf, type Check, checksOf, errorOf } from '../../api/profile';
import type { CheckRecord } from '../../api/views';
import { type Column, DataTable } from '../../parts/DataTable';
import { Notice } from '../../parts/Notice';
import { sentence } from '../../format/sentence';
import { State, type Tone } from '../../parts/State';

const TONES: Record<string, Tone> = { pass: 'good', warn: 'warn', fail: 'bad' };

const checkColumns: readonly Column<Check>[] = [
  {
    name: 'Result',
    cell: (check) => <State tone={TONES[check.status] ?? 'idle'}>{check.status}</State>,
  },
  { name: 'Check', cell: (check) => <code>{check.id}</code> },
  { name: 'What was found', cell: (check) => sentence(check.message) },
  { name: 'Fix', cell: (check) => sentence(check.fix) },
];

/** What a test looked at. */
export function CheckTable({ record }: { record: CheckRecord }) {
  const error = errorOf(record);
  if (error !== '') return <Notice tone="bad" title={sentence(error)} />;
  return (
    <DataTable
      label="checks"
      rows={checksOf(record)}
      rowKey={(check) => check.id}
      columns={checkColumns}
      empty="The test looked at nothing."
    />
  );
}

const attemptColumns: readonly Column<Attempt>[] = [
  {
    name: 'Result',
    cell: (one) => (
      <State tone={one.verdict === one.expected ? 'good' : 'bad'}>{one.verdict}</State>
    ),
  },
  {
    name: 'Target',
    cell: (one) => (
      <>
        <code>{one.id}</code> {one.expected === 'OPEN' && <State tone="info">has to be OPEN</State>}
      </>
    ),
  },
  { name: 'What was tried', cell: (one) => one.target },
  { name: 'How it is known', cell: (one) => sentence(one.how) },
];

/** What a canary tried. */
export function AttemptTable({ record }: { record: CheckRecord }) {
  const error = errorOf(record);
  if (error !== '') return <Notice tone="bad" title={sentence(error)} />;
  return (
    <DataTable
      label="attempts"
      rows={attemptsOf(record)}
      rowKey={(one) => one.id}
      columns={attemptColumns}
      empty="The canary tried nothing."
    />
  );
}
