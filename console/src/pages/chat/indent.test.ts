import { expect, test } from 'vitest';
import { indentOf } from './indent';

test('a line begins as far in as the last one, and further after a colon', () => {
  expect(indentOf('x = 1')).toBe('');
  expect(indentOf('for n in x:')).toBe('    ');
  expect(indentOf('for n in x:\n    print(n)')).toBe('    ');
  expect(indentOf('for n in x:\n    if n: ')).toBe('        ');
  expect(indentOf('')).toBe('');
});
