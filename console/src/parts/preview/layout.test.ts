import { expect, test } from 'vitest';
import { cellsSeen, columnsSeen, mergesOf, offsetsOf, ROW, rowsSeen, widthsOf } from './layout';

const sheet = (merges: [number, number, number, number][], rows = 1000, columns = 100) => ({
  merges,
  rows: Array.from({ length: rows }, () => []),
  columns: Array.from({ length: columns }, (_, index) => `C${index}`),
});

const widths = (columns: number): number[] => Array.from({ length: columns }, () => 96);

const seen = { top: 0, left: 0, width: 600, height: 480 };

test('of a large sheet only what is seen is drawn', () => {
  const offsets = offsetsOf(widths(100));
  const rows = rowsSeen({ ...seen, top: 500 * ROW }, 1000);
  const columns = columnsSeen({ ...seen, left: 960 }, offsets);
  expect(rows.first).toBeGreaterThan(480);
  expect(rows.end).toBeLessThan(540);
  expect(columns.first).toBeGreaterThanOrEqual(7);
  expect(columns.end).toBeLessThanOrEqual(20);
  const cells = cellsSeen(mergesOf(sheet([])), rows, columns);
  const count = [...cells.values()].reduce((sum, row) => sum + row.length, 0);
  expect(count).toBe((rows.end - rows.first) * (columns.end - columns.first));
});

test('the end of a sheet is the end', () => {
  expect(rowsSeen({ ...seen, top: 990 * ROW }, 1000).end).toBe(1000);
  expect(columnsSeen({ ...seen, left: 1e6 }, offsetsOf(widths(3)))).toEqual({ first: 0, end: 3 });
  expect(rowsSeen(seen, 0)).toEqual({ first: 0, end: 0 });
  expect(columnsSeen(seen, offsetsOf([]))).toEqual({ first: 0, end: 0 });
});

test('a merged cell covers the others, also when it begins outside of what is seen', () => {
  const merges = mergesOf(sheet([[0, 0, 99, 1]]));
  const cells = cellsSeen(merges, { first: 50, end: 60 }, { first: 0, end: 3 });
  expect(cells.get(0)).toEqual([{ row: 0, column: 0, rows: 100, columns: 2 }]);
  expect(cells.get(55)).toEqual([{ row: 55, column: 2, rows: 1, columns: 1 }]);
});

test('merges that make no sense are left out, and none reaches over the end', () => {
  const merges = mergesOf(
    sheet([
      [5, 5, 2, 2],
      [-1, 0, 3, 3],
      [998, 98, 2000, 2000],
      [0, 0, 1, 1],
      [1, 1, 2, 2],
    ]),
  );
  expect(merges.all).toEqual([
    { row: 998, column: 98, rows: 2, columns: 2 },
    { row: 0, column: 0, rows: 2, columns: 2 },
  ]);
});

test('columns have room for something and none takes all of it', () => {
  expect(offsetsOf([1, 10_000])).toEqual([0, 40, 460]);
  const cell = (v: string) => ({ v, t: 's' as const });
  const rows = [[cell('a'), cell('a somewhat longer text')], [null]];
  expect(widthsOf({ widths: [], columns: ['A', 'B', 'C'], rows })).toEqual([60, 192, 60]);
  expect(widthsOf({ widths: [77], columns: ['A'], rows })).toEqual([77]);
});
