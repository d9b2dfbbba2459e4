/** Sequences that colour a terminal or move in it; what follows OSC goes up to its end. */
const ESCAPES =
  // eslint-disable-next-line no-control-regex
  /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\[[0-?]*[ -/]*(?:[@-~]|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|[ -/]*[0-~]?)/g;

/** Characters that show nothing, but line ends and tabs. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0007\u000b-\u000c\u000e-\u001f\u007f-\u009f]/g;

/**
 * What a terminal would show in the end: without colours, and with lines written over where a
 * program went back to their beginning, as progress bars do.
 */
export function terminalText(raw: string): string {
  const plain = raw.replace(ESCAPES, '').replace(CONTROLS, '').replaceAll('\r\n', '\n');
  if (!/[\r\b]/.test(plain)) return plain;
  return plain.split('\n').map(lineText).join('\n');
}

function lineText(line: string): string {
  if (!/[\r\b]/.test(line)) return line;
  const cells: string[] = [];
  let at = 0;
  for (const letter of line) {
    if (letter === '\r') at = 0;
    else if (letter === '\b') at = Math.max(0, at - 1);
    else cells[at++] = letter;
  }
  return cells.join('').trimEnd();
}
