import type { Sheet } from '../../api/views';

/** Height of a row, in pixels. */
export const ROW = 24;

/** Width of the numbers of rows at the left. */
export const GUTTER = 52;

const NARROWEST = 40;
const WIDEST = 420;

/** How many rows are looked at where the file does not say how wide its columns are. */
const SAMPLE = 60;

/** The widths of columns, in pixels: those of the file, else what their words need. */
export function widthsOf({ widths, columns, rows }: Pick<Sheet, 'widths' | 'columns' | 'rows'>) {
  return columns.map((_, column) => {
    const width = widths[column];
    if (width !== undefined) return width;
    const letters = rows.slice(0, SAMPLE).map((row) => row[column]?.v.length ?? 0);
    return Math.min(280, Math.max(60, 16 + 8 * Math.max(0, ...letters)));
  });
}

/** Where the left side of each column is, and behind the last one the whole width. */
export function offsetsOf(widths: readonly number[]): number[] {
  const offsets = [0];
  for (const width of widths) {
    const shown = Math.min(WIDEST, Math.max(NARROWEST, width));
    offsets.push((offsets.at(-1) ?? 0) + shown);
  }
  return offsets;
}

export interface Seen {
  top: number;
  left: number;
  width: number;
  height: number;
}

export interface Range {
  first: number;
  /** The one behind the last. */
  end: number;
}

/** A few more than are seen, so that scrolling finds them drawn. */
const MORE_ROWS = 12;
const MORE_COLUMNS = 2;

export function rowsSeen({ top, height }: Seen, rows: number): Range {
  const first = Math.max(0, Math.floor(top / ROW) - MORE_ROWS);
  return { first, end: Math.min(rows, Math.ceil((top + height) / ROW) + MORE_ROWS) };
}

export function columnsSeen({ left, width }: Seen, offsets: readonly number[]): Range {
  const columns = offsets.length - 1;
  let first = 0;
  while (first < columns - 1 && (offsets[first + 1] ?? 0) <= left) first += 1;
  let end = first;
  while (end < columns && (offsets[end] ?? 0) < left + width) end += 1;
  return { first: Math.max(0, first - MORE_COLUMNS), end: Math.min(columns, end + MORE_COLUMNS) };
}

export interface Placed {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

/** Merged cells by the place of their first, and which cells they cover. */
export interface Merges {
  anchors: ReadonlyMap<string, Placed>;
  covered: ReadonlySet<string>;
  all: readonly Placed[];
}

export const place = (row: number, column: number) => `${row} ${column}`;

export function mergesOf(sheet: Pick<Sheet, 'merges' | 'rows' | 'columns'>): Merges {
  const anchors = new Map<string, Placed>();
  const covered = new Set<string>();
  for (const [top = -1, left = -1, bottom = -1, right = -1] of sheet.merges) {
    const lastRow = Math.min(bottom, sheet.rows.length - 1);
    const lastColumn = Math.min(right, sheet.columns.length - 1);
    if (top < 0 || left < 0 || lastRow < top || lastColumn < left) continue;
    if (anchors.has(place(top, left)) || covered.has(place(top, left))) continue;
    const rows = lastRow - top + 1;
    const columns = lastColumn - left + 1;
    anchors.set(place(top, left), { row: top, column: left, rows, columns });
    for (let row = top; row <= lastRow; row += 1) {
      for (let column = left; column <= lastColumn; column += 1) {
        if (row !== top || column !== left) covered.add(place(row, column));
      }
    }
  }
  return { anchors, covered, all: [...anchors.values()] };
}

const meets = (first: number, count: number, range: Range) =>
  first < range.end && first + count > range.first;

/** The cells to draw: those that are seen, and merged ones that begin outside and reach in. */
export function cellsSeen(merges: Merges, rows: Range, columns: Range): Map<number, Placed[]> {
  const cells = new Map<number, Placed[]>();
  const add = (cell: Placed) => {
    const row = cells.get(cell.row);
    if (row) row.push(cell);
    else cells.set(cell.row, [cell]);
  };
  for (let row = rows.first; row < rows.end; row += 1) {
    cells.set(row, []);
    for (let column = columns.first; column < columns.end; column += 1) {
      const at = place(row, column);
      if (!merges.covered.has(at) && !merges.anchors.has(at)) {
        add({ row, column, rows: 1, columns: 1 });
      }
    }
  }
  for (const cell of merges.all) {
    if (meets(cell.row, cell.rows, rows) && meets(cell.column, cell.columns, columns)) add(cell);
  }
  for (const row of cells.values()) row.sort((a, b) => a.column - b.column);
  return new Map([...cells].toSorted(([a], [b]) => a - b));
}
