import { expect, test } from 'vitest';
import { whose } from './whose';

test('a sandbox is known by its person, or by what it is for', () => {
  expect(whose({ purpose: 'code', user_email: 'ada@example.com' })).toBe('ada@example.com');
  expect(whose({ purpose: 'code', user_email: null })).toBe('a service');
  expect(whose({ purpose: 'preview', user_email: null })).toBe('the previewer');
});
