import { expect, test } from 'vitest';
import { turnOf } from './turn';

const pages = [1, 2, 3, 4];

test('keys turn pages', () => {
  expect(turnOf('ArrowRight', 1, pages)).toBe(2);
  expect(turnOf('ArrowLeft', 3, pages)).toBe(2);
  expect(turnOf('End', 1, pages)).toBe(4);
  expect(turnOf('Home', 4, pages)).toBe(1);
});

test('nothing lies before the first page or after the last, and other keys turn none', () => {
  expect(turnOf('ArrowLeft', 1, pages)).toBeNull();
  expect(turnOf('Home', 1, pages)).toBeNull();
  expect(turnOf('a', 2, pages)).toBeNull();
  expect(turnOf('ArrowRight', 1, [])).toBeNull();
});
