/** How deep markdown may nest: its reader calls itself for each level, and fails at some thousands. */
export const MOST_DEPTH = 50;

/** How much of it is read as markdown: the reader takes its time, and all of the page waits. */
export const MOST_CHARACTERS = 200_000;

/** What opens one more level at the beginning of a line: a quotation, or an item of a list. */
const OPENS = /[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t\r\n]|$))/y;

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
  while (place < text.length) {
    if (depthAt(text, place) > MOST_DEPTH) return false;
    const end = text.indexOf('\n', place);
    if (end === -1) return true;
    place = end + 1;
  }
  return true;
}
