import { expect, test } from 'vitest';
import { Failure } from '../../api/failure';
import { complaint } from './settings';

test('what is wrong with a setting stands at it, in the words of the form', () => {
  const message = 'execution_seconds is from 1 to max_execution_seconds';
  const error = new Failure(400, 'invalid', message, 'choose another value', null, {});
  expect(complaint(error, 'execution_seconds')).toBe(
    'Execution limit is from 1 to Longest execution.',
  );
  expect(complaint(error, 'max_execution_seconds')).toBeNull();
  expect(complaint(null, 'execution_seconds')).toBeNull();
});
