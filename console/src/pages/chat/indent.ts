/**
 * Begins a line as far in as the last one, as editors of code do, and further after a colon.
 * Says whether it did: a line that is not indented needs nothing.
 */
export function indentAfter(area: HTMLTextAreaElement): boolean {
  const indent = indentOf(area.value.slice(0, area.selectionStart));
  if (indent === '') return false;
  // What can be undone is only what browsers typed themselves; the newer way leaves no trace.
  area.setRangeText(`\n${indent}`, area.selectionStart, area.selectionEnd, 'end');
  area.dispatchEvent(new Event('input', { bubbles: true }));
  return true;
}

/** What the line after this text begins with. */
export function indentOf(before: string): string {
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
  return line.trimEnd().endsWith(':') ? `${indent}    ` : indent;
}
