import { expect, test } from 'vitest';
import { isEnd, staysAtEnd } from './stick';

const view = 500;

test('what grows while nobody scrolls stays in sight', () => {
  const before = { top: 500, height: 1000, view };
  expect(staysAtEnd(true, before, { top: 500, height: 1400, view })).toBe(true);
});

test('a small step up is enough to be left in peace', () => {
  const before = { top: 500, height: 1000, view };
  const now = { top: 480, height: 1000, view };
  expect(isEnd(now)).toBe(false);
  expect(staysAtEnd(true, before, now)).toBe(false);
});

test('whoever comes back to the end sees the newest again', () => {
  const before = { top: 300, height: 1000, view };
  expect(staysAtEnd(false, before, { top: 460, height: 1000, view })).toBe(true);
  expect(staysAtEnd(false, before, { top: 400, height: 1000, view })).toBe(false);
});

test('something that is folded in at the end is no step up', () => {
  const before = { top: 900, height: 1400, view };
  expect(staysAtEnd(true, before, { top: 500, height: 1000, view })).toBe(true);
});
