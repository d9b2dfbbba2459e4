import { expect, test } from 'vitest';
import {
  announcement,
  endsInFailure,
  lastFailure,
  nowText,
  runningReply,
  runText,
  wordsOf,
} from './telling';
import { emptyThread, type Reply, type Run, type Step, type ThreadState } from './view';

const step = (number: number, end: Step['end']): Step => ({
  number,
  code: '',
  startedAt: '',
  output: { blocks: [], isStale: false },
  files: [],
  end,
});

const ok = { isSuccess: true, summary: 'ran to its end', fix: null, code: null, durationMs: 1400 };
const bad = { ...ok, isSuccess: false, summary: 'raised KeyError' };

const run = (...steps: Step[]): Run => ({
  tasks: [],
  plan: null,
  lines: steps.map((one) => ({ kind: 'step', step: one })),
});

const reply = (parts: Reply['parts'], end: Reply['end'] = null): Reply => ({
  id: 'r',
  replyTo: 'm',
  startedAt: '',
  parts,
  files: [],
  end,
});

const thread = (one: Reply): ThreadState => ({
  ...emptyThread,
  items: [{ kind: 'reply', id: 'r' }],
  replies: { r: one },
});

test('a run says how many steps it had, how long they took and how many failed', () => {
  expect(runText(run(step(1, ok), step(2, ok), step(3, ok)))).toBe('Ran 3 steps in 4.2 s');
  expect(runText(run(step(1, ok)))).toBe('Ran 1 step in 1.4 s');
  expect(runText(run(step(1, bad), step(2, ok)))).toBe('Ran 2 steps in 2.8 s, 1 failed');
});

test('a run failed where its last step did', () => {
  expect(lastFailure(run(step(1, ok), step(2, bad)))?.summary).toBe('raised KeyError');
  expect(lastFailure(run(step(1, bad), step(2, ok)))).toBeNull();
  expect(lastFailure(run(step(1, null)))).toBeNull();
});

test('a reply that ended with code that failed can be tried again', () => {
  const end = { outcome: 'done', error: null, steps: 1, durationMs: 1 } as const;
  const ran = (of: Step['end']): Reply['parts'] => [{ kind: 'run', run: run(step(1, of)) }];
  expect(endsInFailure(reply(ran(bad), end))).toBe(true);
  expect(endsInFailure(reply(ran(ok), end))).toBe(false);
  expect(endsInFailure(reply([{ kind: 'text', text: 'x' }], end))).toBe(false);
  expect(endsInFailure(reply(ran(bad)))).toBe(false);
});

test('what is done now is the plan, else the step', () => {
  const going = run(step(1, ok), step(2, null));
  expect(nowText(reply([{ kind: 'run', run: going }]))).toBe('Running step 2');
  const planned = { ...going, plan: 'Drawing the chart' };
  expect(nowText(reply([{ kind: 'run', run: planned }]))).toBe('Drawing the chart');
  expect(nowText(reply([{ kind: 'text', text: 'x' }]))).toBe('Writing the answer');
});

test('the words of a reply are what is copied, without what ran in between', () => {
  const parts: Reply['parts'] = [
    { kind: 'text', text: 'I look at it.\n\n' },
    { kind: 'run', run: run(step(1, ok)) },
    { kind: 'text', text: '**Done**' },
  ];
  expect(wordsOf(reply(parts))).toBe('I look at it.\n\n**Done**');
  expect(wordsOf(reply([]))).toBe('');
});

test('finished steps are announced, and the end; words are not', () => {
  const parts: Reply['parts'] = [{ kind: 'run', run: run(step(1, bad), step(2, null)) }];
  expect(announcement(thread(reply(parts)))).toBe('Step 1 failed: raised KeyError.');
  expect(announcement(thread(reply([{ kind: 'text', text: 'x' }])))).toBe('');
  const end = { outcome: 'stopped', error: null, steps: 2, durationMs: 1 } as const;
  expect(announcement(thread(reply(parts, end)))).toBe('The reply was stopped.');
  expect(runningReply(thread(reply(parts, end)))).toBeNull();
  expect(runningReply(thread(reply(parts)))?.id).toBe('r');
});
