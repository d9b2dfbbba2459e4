import { expect, test } from 'vitest';
import { refusal } from './limits';

const limits = { max_files: 2, max_file_bytes: 100, max_total_bytes: 150 };
const file = (size: number) => ({ name: 'a.csv', size });

test('what fits is not refused', () => {
  expect(refusal(file(100), [], limits)).toBeNull();
  expect(refusal(file(100), [{ bytes: 50 }], limits)).toBeNull();
});

test('what does not fit is refused with both numbers', () => {
  expect(refusal(file(101), [], limits)).toBe('It has 101 B, and a file may have 100 B.');
  expect(refusal(file(100), [{ bytes: 51 }], limits)).toContain('151 B');
  expect(refusal(file(1), [{ bytes: 1 }, { bytes: 1 }], limits)).toContain('2 files');
});
