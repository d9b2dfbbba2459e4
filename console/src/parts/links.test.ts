import { expect, test } from 'vitest';
import { safeLink } from './links';

test('addresses of the web may be followed', () => {
  expect(safeLink('https://example.com/a?b=c')).toBe('https://example.com/a?b=c');
  expect(safeLink('http://example.com')).toBe('http://example.com/');
});

test('nothing else may', () => {
  const others = [
    'javascript:alert(1)',
    ' JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:x',
    '/admin',
    '//example.com',
    'mailto:a@b',
    '',
    undefined,
  ];
  expect(others.map(safeLink).filter((link) => link !== null)).toEqual([]);
});
