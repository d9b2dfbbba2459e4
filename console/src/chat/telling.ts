import type { Reply, Run, Step, StepEnd, ThreadState } from './view';
import { took } from '../format/time';

export const stepsOf = (run: Run): Step[] =>
  run.lines.flatMap((line) => (line.kind === 'step' ? [line.step] : []));

const count = (number: number, one: string) => `${number} ${one}${number === 1 ? '' : 's'}`;

/** What a run came to: `Ran 3 steps in 4.2 s`. */
export function runText(run: Run): string {
  const steps = stepsOf(run);
  if (steps.length === 0) return run.plan ?? run.tasks.at(-1) ?? 'Nothing ran';
  const ms = steps.reduce((sum, { end }) => sum + (end?.durationMs ?? 0), 0);
  const failed = steps.filter(({ end }) => end !== null && !end.isSuccess).length;
  const text = `Ran ${count(steps.length, 'step')} in ${took(ms)}`;
  return failed === 0 ? text : `${text}, ${failed} failed`;
}

/** What a reply says, as it was written. */
export const wordsOf = ({ parts }: Reply): string =>
  parts
    .flatMap((part) => (part.kind === 'text' ? [part.text.trim()] : []))
    .filter((text) => text !== '')
    .join('\n\n');

/** Why the last step did not do what it was to do, and what can be done; nothing where it did. */
export function lastFailure(run: Run): StepEnd | null {
  const end = stepsOf(run).at(-1)?.end;
  return end && !end.isSuccess ? end : null;
}

/** Whether a reply came to its end with code that failed. */
export function endsInFailure({ parts, end }: Reply): boolean {
  const run = parts.findLast((part) => part.kind === 'run');
  return end?.outcome === 'done' && run?.kind === 'run' && lastFailure(run.run) !== null;
}

/** What a reply does now, in a line. */
export function nowText(reply: Reply): string {
  const last = reply.parts.at(-1);
  if (last === undefined || last.kind === 'notice') return 'Working on it';
  if (last.kind === 'text') return 'Writing the answer';
  const running = stepsOf(last.run).findLast(({ end }) => end === null);
  if (running) return last.run.plan ?? `Running step ${running.number}`;
  return last.run.plan ?? last.run.tasks.at(-1) ?? 'Working on it';
}

/** The reply that is not over, where there is one. */
export function runningReply(state: ThreadState): Reply | null {
  for (const item of state.items.toReversed()) {
    if (item.kind !== 'reply') continue;
    const reply = state.replies[item.id];
    return reply?.end === null ? reply : null;
  }
  return null;
}

const OUTCOMES = {
  done: 'The reply is done.',
  stopped: 'The reply was stopped.',
  failed: 'The reply failed.',
};

/** The last thing that was finished, for those who hear the page. Words of a reply are not told. */
export function announcement(state: ThreadState): string {
  const item = state.items.findLast(({ kind }) => kind === 'reply');
  const reply = item?.kind === 'reply' ? state.replies[item.id] : undefined;
  if (!reply) return '';
  if (reply.end) return OUTCOMES[reply.end.outcome];
  const steps = reply.parts.flatMap((part) => (part.kind === 'run' ? stepsOf(part.run) : []));
  const ended = steps.findLast(({ end }) => end !== null);
  if (!ended?.end) return '';
  return `Step ${ended.number} ${ended.end.isSuccess ? 'is done' : `failed: ${ended.end.summary}`}.`;
}
