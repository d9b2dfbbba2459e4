/** How deep markdown may nest: its reader calls itself for each level, and fails at some thousands. */
export const MOST_DEPTH = 50;

/** How much of it is read as markdown: the reader takes its time, and all of the page waits. */
export const MOST_CHARACTERS = 200_000;

/**
 * How many cells tables may have: each row is filled up to the columns of its head, so that a short
 * text has millions of them. It is as if all lines were rows of the widest.
 */
export const MOST_CELLS = 50_000;

/** What opens one more level at the beginning of a line: a quotation, or an item of a list. */
const OPENS = /[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t\r\n]|$))/y;

const ENDS = /[\r\n]/g;

/** How many levels a line opens that begins at a place of a text. */
function depthAt(text: string, place: number): number {
  OPENS.lastIndex = place;
  let depth = 0;
  while (depth <= MOST_DEPTH && OPENS.test(text)) depth += 1;
  return depth;
}

/** Whether a text of a model or a program can be read as markdown without harm to the page. */
export function isReadable(text: string): boolean {
  if (text.length > MOST_CHARACTERS) return false;
  let place = 0;
  let lines = 0;
  let columns = 0;
  while (place < text.length) {
    if (depthAt(text, place) > MOST_DEPTH) return false;
    const end = lineEnd(text, place);
    lines += 1;
    columns = Math.max(columns, columnsIn(text, place, end));
    place = end + 1;
  }
  return lines * columns <= MOST_CELLS;
}

/** Where a line ends: a return alone ends one, too. */
function lineEnd(text: string, place: number): number {
  ENDS.lastIndex = place;
  return ENDS.exec(text)?.index ?? text.length;
}

/** How many columns a line has at most, where it is one of a table. */
function columnsIn(text: string, place: number, end: number): number {
  const bars = text.slice(place, end).split('|').length - 1;
  return bars === 0 ? 0 : bars + 1;
}
