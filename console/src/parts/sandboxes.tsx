import type { Sandbox } from '../api/views';
import { Ago } from './Ago';
import { CopyText } from './CopyText';
import { Countdown } from './Countdown';
import type { Column } from './DataTable';
import { NamedState, State, type Tone } from './State';

/** A suspended sandbox has been idle for long enough; only its files are left. */
const idleUntil = (one: Sandbox) =>
  one.state === 'suspended' ? null : Date.parse(one.active_at) + one.idle_seconds * 1000;

const isEnded = (one: Sandbox) => one.state === 'ended';

/** Why sandboxes end, by the API's word, and whether that is as it should be. */
const ENDS: Record<string, readonly [string, Tone]> = {
  asked: ['asked for', 'idle'],
  admin: ['by a system admin', 'info'],
  idle: ['not used', 'idle'],
  hard_limit: ['hard limit', 'idle'],
  out_of_memory: ['out of memory', 'bad'],
  start_failed: ['did not start', 'bad'],
  gateway_lost: ['gateway lost', 'bad'],
};

function Reason({ why }: { why: string }) {
  const [text, tone] = ENDS[why] ?? [why, 'idle'];
  return <State tone={tone}>{text}</State>;
}

export const stateColumn: Column<Sandbox> = {
  name: 'State',
  order: (one) => one.state,
  cell: (one) => <NamedState name={one.state} />,
};

export const madeColumn: Column<Sandbox> = {
  name: 'Made',
  order: (one) => one.created_at,
  cell: (one) => <Ago at={one.created_at} />,
};

/** How long there is until its processes end, and until all of it does. */
export const limitColumns: readonly Column<Sandbox>[] = [
  {
    name: 'Idle in',
    order: (one) => (isEnded(one) ? 0 : (idleUntil(one) ?? 0)),
    cell: (one) => {
      if (isEnded(one)) return null;
      const until = idleUntil(one);
      return until === null ? 'idle, files stay' : <Countdown until={until} />;
    },
  },
  {
    name: 'Ends in',
    order: (one) => (isEnded(one) ? '' : one.hard_deadline),
    cell: (one) => (isEnded(one) ? null : <Countdown until={Date.parse(one.hard_deadline)} />),
  },
];

/** When it ended and why; a sandbox that is there has none. */
export const endedColumn: Column<Sandbox> = {
  name: 'Ended',
  order: (one) => one.ended_at ?? '',
  cell: (one) =>
    one.ended_at && (
      <>
        <Ago at={one.ended_at} /> <Reason why={one.ended_why ?? ''} /> {one.ended_detail}
      </>
    ),
};

export const idColumn: Column<Sandbox> = {
  name: 'Id',
  cell: (one) => <CopyText text={one.id} shown={`…${one.id.slice(-8)}`} what="sandbox id" />,
};
