import { expect, test } from 'vitest';
import { exportAddress, fromField, readAuditSearch, toField } from './search';

test('an address gives only what a filter knows', () => {
  expect(readAuditSearch({ action: 'profile.', actor: 3, since: '', other: 'x' })).toEqual({
    action: 'profile.',
  });
});

test('an export has the filter and not the page', () => {
  expect(exportAddress('csv', { actor: 'a b&c', cursor: 'x' })).toBe(
    '/api/v1/admin/audit/export/csv?actor=a+b%26c',
  );
});

test('a time goes through its field and back, to the minute', () => {
  const time = '2026-03-01T12:34:00.000Z';
  expect(fromField(toField(time))).toBe(time);
  expect(toField('no time')).toBe('');
  expect(fromField('')).toBeUndefined();
});
