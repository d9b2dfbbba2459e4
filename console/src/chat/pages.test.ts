import { expect, test } from 'vitest';
import type { ThreadEvent } from '../api/thread-events';
import { askEarlier, earlier, known, later, nothingKnown, type Page, restOf } from './pages';

/** Three exchanges of four events each. */
const all: ThreadEvent[] = [0, 1, 2]
  .flatMap((n): [string, unknown][] => [
    ['message_sent', { message: `m${n}`, author: { name: 'Ada' }, kind: 'text', text: 'hello' }],
    ['reply_started', { reply: `r${n}`, reply_to: `m${n}` }],
    ['text', { reply: `r${n}`, text: `answer ${n}` }],
    ['reply_ended', { reply: `r${n}`, outcome: 'done', steps: 0, duration_ms: 1 }],
  ])
  .map(([type, data], index) => ({ seq: index + 1, at: '', type, data }));

const page = (from: number, to: number): Page => ({
  events: all.slice(from - 1, to),
  cursor: from > 1 ? String(from) : null,
});

test('a page is shown by itself, and those before it make the whole of it', () => {
  const newest = known(page(9, 12));
  expect(newest.state.items.map(({ id }) => id)).toEqual(['m2', 'r2']);
  expect(newest.state.seq).toBe(12);
  const more = earlier(newest, page(5, 8));
  expect(more.cursor).toBe('5');
  const whole = earlier(more, page(1, 4));
  expect(whole.cursor).toBeNull();
  expect(whole.state).toEqual(known({ events: all, cursor: null }).state);
});

test('what happens meanwhile stays when earlier pages come, whoever told it first', () => {
  const begun = known(page(5, 8));
  // A stream that other pages share may tell again what is known, and in parts.
  const live = later(later(begun, all.slice(6, 10)), all.slice(8, 12));
  const whole = earlier(live, page(1, 4));
  expect(whole.state).toEqual(known({ events: all, cursor: null }).state);
  expect(later(whole, all)).toBe(whole);
});

test('a gap is waited for also across earlier pages', () => {
  const live = later(known(page(5, 8)), all.slice(10, 12));
  expect(live.state.seq).toBe(8);
  const whole = later(earlier(live, page(1, 4)), all.slice(8, 10));
  expect(whole.state.seq).toBe(12);
});

test('a thread in which nothing has happened is followed from its beginning', () => {
  expect(known({ events: [], cursor: null })).toEqual(nothingKnown);
  expect(later(nothingKnown, all).state.seq).toBe(12);
});

test('of an exchange that is longer than a page each page is shown as it comes', async () => {
  const asked: string[] = [];
  const shown: Page[] = [];
  const ask = (cursor: string) => {
    asked.push(cursor);
    const before = Number(cursor);
    return Promise.resolve(page(Math.max(1, before - 3), before - 1));
  };
  const newest = page(10, 12);
  expect(restOf(newest)).toBe('10');
  await askEarlier(ask, '10', (one) => shown.push(one));
  expect(asked).toEqual(['10', '7', '4']);
  expect(shown).toEqual([page(7, 9), page(4, 6), page(1, 3)]);
  expect(restOf(page(1, 3))).toBeNull();
  // As the pages make the whole, in whichever parts they are shown.
  const whole = shown.reduce(earlier, known(newest));
  expect(whole.state).toEqual(known({ events: all, cursor: null }).state);
  asked.length = 0;
  await askEarlier(ask, '8', () => undefined);
  expect(asked).toEqual(['8']);
});
