import { expect, test } from 'vitest';
import type { ThreadEvent } from '../api/thread-events';
import { reduce } from './reduce';
import { type Block, emptyThread, type Run, type ThreadState } from './view';

/** Numbers events from 1. */
const numbered = (...events: [string, unknown][]): ThreadEvent[] =>
  events.map(([type, data], index) => ({
    seq: index + 1,
    at: '2026-03-01T12:00:00Z',
    type,
    data,
  }));

const sent: [string, unknown] = [
  'message_sent',
  { message: 'm1', author: { user: 'u1', name: 'Ada' }, kind: 'text', text: 'Sum it up' },
];
const started: [string, unknown] = ['reply_started', { reply: 'r1', reply_to: 'm1' }];
const step = (number: number): [string, unknown] => [
  'step_started',
  { reply: 'r1', step: number, code: `print(${number})` },
];
const inStep = (type: string, data: unknown, number = 1): [string, unknown] => [
  'step_event',
  { reply: 'r1', step: number, event: { type, data } },
];
const ended = (number: number, isSuccess = true): [string, unknown] => [
  'step_ended',
  {
    reply: 'r1',
    step: number,
    is_success: isSuccess,
    summary: 'ran to its end',
    duration_ms: 1200,
  },
];
const saved = (name: string, version: number): [string, unknown] => [
  'file_saved',
  {
    reply: 'r1',
    step: 1,
    artifact: `${name}-${version}`,
    name,
    version,
    bytes: 10,
    media_type: 'text/csv',
  },
];

const all = (...events: [string, unknown][]) => reduce(emptyThread, numbered(...events));

/** The runs of the one reply. */
const runs = (state: ThreadState): Run[] =>
  state.replies.r1?.parts.flatMap((part) => (part.kind === 'run' ? [part.run] : [])) ?? [];

const blocks = (state: ThreadState, number = 1): readonly Block[] =>
  runs(state)
    .flatMap((run) => run.lines)
    .flatMap((line) => (line.kind === 'step' && line.step.number === number ? [line.step] : []))
    .flatMap((one) => one.output.blocks);

test('a message and its reply stand below each other', () => {
  const state = all(
    sent,
    started,
    ['text', { reply: 'r1', text: 'It ' }],
    ['text', { reply: 'r1', text: 'is 7.' }],
  );
  expect(state.items.map((item) => item.kind)).toEqual(['message', 'reply']);
  expect(state.replies.r1?.parts).toEqual([{ kind: 'text', text: 'It is 7.' }]);
  expect(state.seq).toBe(4);
});

test('events that come again change nothing', () => {
  const events = numbered(sent, started, ['text', { reply: 'r1', text: 'once' }]);
  const state = reduce(emptyThread, events);
  expect(reduce(state, events)).toBe(state);
  expect(reduce(emptyThread, [...events, ...events])).toEqual(state);
});

test('events in any order, in any parts, come to the same', () => {
  const events = numbered(
    sent,
    started,
    step(1),
    inStep('stdout', { text: 'a' }),
    inStep('stdout', { text: 'b' }),
    ended(1),
    ['text', { reply: 'r1', text: 'Done.' }],
  );
  const whole = reduce(emptyThread, events);
  expect(reduce(emptyThread, events.toReversed())).toEqual(whole);
  const byOne = events.toReversed().reduce((state, event) => reduce(state, [event]), emptyThread);
  expect(byOne).toEqual(whole);
});

test('an event before which another is missing waits for it', () => {
  const [first, second, third] = numbered(sent, started, ['text', { reply: 'r1', text: 'x' }]);
  if (!first || !second || !third) throw new Error('there are three');
  const early = reduce(emptyThread, [first, third]);
  expect(early.seq).toBe(1);
  expect(early.early).toEqual([third]);
  const whole = reduce(early, [second]);
  expect(whole.seq).toBe(3);
  expect(whole.early).toEqual([]);
});

test('what a newer server tells is counted and not shown', () => {
  const state = all(sent, ['weather_changed', { sun: true }], started);
  expect(state.seq).toBe(3);
  expect(state.items).toHaveLength(2);
});

test('steps that follow each other are one run, words between them begin another', () => {
  const state = all(
    sent,
    started,
    ['handed_over', { reply: 'r1', task: 'Make slides' }],
    ['plan', { reply: 'r1', text: 'Reading the workbook' }],
    step(1),
    ended(1),
    ['notice', { reply: 'r1', code: 'sandbox_replaced', text: 'A new sandbox took its place' }],
    step(2),
    ended(2),
    ['text', { reply: 'r1', text: 'Here it is.' }],
    step(3),
  );
  expect(runs(state).map((run) => run.lines.map((line) => line.kind))).toEqual([
    ['plan', 'step', 'notice', 'step'],
    ['step'],
  ]);
  expect(runs(state)[0]).toMatchObject({ tasks: ['Make slides'], plan: 'Reading the workbook' });
});

test('output of one stream is joined, the other begins a block', () => {
  const state = all(
    sent,
    started,
    step(1),
    inStep('stdout', { text: 'a' }),
    inStep('stdout', { text: 'b' }),
    inStep('stderr', { text: 'c' }),
    inStep('stdout', { text: 'd' }),
  );
  expect(blocks(state)).toMatchObject([
    { stream: 'stdout', raw: 'ab' },
    { stream: 'stderr', raw: 'c' },
    { stream: 'stdout', raw: 'd' },
  ]);
});

test('a character that is cut in two is read whole', () => {
  const bytes = [...new TextEncoder().encode('a€b')];
  const part = (some: number[]) => ({ base64: btoa(String.fromCharCode(...some)) });
  const state = all(
    sent,
    started,
    step(1),
    inStep('stdout', part(bytes.slice(0, 2))),
    inStep('stdout', part(bytes.slice(2))),
  );
  expect(blocks(state)).toMatchObject([{ raw: 'a€b', rest: '' }]);
});

test('bytes that are no text show as such and lose nothing else', () => {
  const state = all(
    sent,
    started,
    step(1),
    inStep('stdout', { base64: btoa('\u00ffx') }),
    inStep('stdout', { text: 'y' }),
  );
  expect(blocks(state)).toMatchObject([{ raw: '\ufffdxy' }]);
});

test('output is cleared at once, or with the next that comes', () => {
  const before: [string, unknown][] = [sent, started, step(1), inStep('stdout', { text: 'old' })];
  expect(blocks(all(...before, inStep('clear_output', { wait: false })))).toEqual([]);
  const waits = [...before, inStep('clear_output', { wait: true })];
  expect(blocks(all(...waits))).toMatchObject([{ raw: 'old' }]);
  expect(blocks(all(...waits, inStep('stdout', { text: 'new' })))).toMatchObject([{ raw: 'new' }]);
});

test('a display is changed where it stands, also by a later step', () => {
  const state = all(
    sent,
    started,
    step(1),
    inStep('display', { data: { 'text/plain': '1 of 2' }, display_id: 'd' }),
    inStep('stdout', { text: 'x' }),
    ended(1),
    step(2),
    inStep('update_display', { data: { 'text/plain': '2 of 2' }, display_id: 'd' }, 2),
  );
  expect(blocks(state)).toMatchObject([{ shown: { text: '2 of 2' } }, { raw: 'x' }]);
  expect(blocks(state, 2)).toEqual([]);
});

test('a picture is kept as data, and HTML and SVG are never shown', () => {
  const forms = (data: Record<string, unknown>) => {
    const [block] = blocks(all(sent, started, step(1), inStep('display', { data })));
    return block?.kind === 'display' ? block.shown : null;
  };
  expect(forms({ 'image/png': 'AAAA', 'text/plain': '<Figure>' })).toMatchObject({ form: 'image' });
  expect(forms({ 'text/html': '<b>x</b>', 'text/plain': 'x' })).toEqual({
    form: 'text',
    text: 'x',
    hasHtml: true,
  });
  expect(forms({ 'text/html': '<script>' })).toEqual({ form: 'text', text: '', hasHtml: true });
  expect(forms({ 'image/svg+xml': '<svg onload=x>' })).toMatchObject({ form: 'text', text: '' });
});

test('a file stands once in its reply, at its newest version, and in each step', () => {
  const state = all(
    sent,
    started,
    step(1),
    saved('a.csv', 1),
    saved('b.csv', 1),
    saved('a.csv', 2),
  );
  expect(state.replies.r1?.files.map((file) => [file.name, file.version])).toEqual([
    ['b.csv', 1],
    ['a.csv', 2],
  ]);
});

test('a restored version stands in the thread itself', () => {
  const state = all([
    'file_saved',
    {
      artifact: 'a3',
      name: 'a.csv',
      version: 3,
      bytes: 10,
      media_type: 'text/csv',
      restored_version: 1,
    },
  ]);
  expect(state.items).toMatchObject([{ kind: 'saved', file: { restoredVersion: 1 } }]);
});

test('so does what was saved when nobody ran code any more', () => {
  const file = { artifact: 'a1', name: 'a.csv', version: 1, bytes: 10, media_type: 'text/csv' };
  const state = all(['file_saved', file]);
  expect(state.items).toMatchObject([{ kind: 'saved', file: { restoredVersion: null } }]);
});

test('the end of a reply says how it went', () => {
  const state = all(sent, started, step(1), ended(1, false), [
    'reply_ended',
    {
      reply: 'r1',
      outcome: 'failed',
      error: { code: 'no_model', message: 'no model is set' },
      steps: 1,
      duration_ms: 1300,
    },
  ]);
  expect(state.replies.r1?.end).toMatchObject({ outcome: 'failed', error: { code: 'no_model' } });
});

test('a reply that has ended leaves no step that seems to run', () => {
  const over: [string, unknown] = [
    'reply_ended',
    { reply: 'r1', outcome: 'failed', steps: 2, duration_ms: 1300 },
  ];
  const state = all(sent, started, step(1), ended(1), step(2), over);
  const ends = runs(state)
    .flatMap((run) => run.lines)
    .flatMap((line) => (line.kind === 'step' ? [line.step.end] : []));
  expect(ends).toMatchObject([
    { isSuccess: true, summary: 'ran to its end' },
    { isSuccess: false, summary: 'did not end', durationMs: 0 },
  ]);
});

test('what kept a step from running is known by its word', () => {
  const refused: [string, unknown] = [
    'step_ended',
    {
      reply: 'r1',
      step: 1,
      is_success: false,
      summary: 'this workspace has 2 of 2 sandboxes at once',
      code: 'quota:max_concurrent',
      duration_ms: 3,
    },
  ];
  const [line] = runs(all(sent, started, step(1), refused))[0]?.lines ?? [];
  expect(line).toMatchObject({ step: { end: { code: 'quota:max_concurrent' } } });
});

test('events of a reply that is not there do no harm', () => {
  expect(all(step(1), ended(1), ['text', { reply: 'r9', text: 'x' }]).items).toEqual([]);
});
