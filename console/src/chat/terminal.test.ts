import { expect, test } from 'vitest';
import { terminalText } from './terminal';

const ESC = '\u001b';

test('colours are taken out', () => {
  expect(terminalText(`${ESC}[0;31mValueError${ESC}[0m: no`)).toBe('ValueError: no');
  expect(terminalText(`${ESC}[38;5;241mgrey${ESC}[39;49;00m`)).toBe('grey');
});

test('titles and links of a terminal are taken out, also where they are cut', () => {
  expect(terminalText(`${ESC}]0;title\u0007text`)).toBe('text');
  expect(terminalText(`${ESC}]8;;https://x.example${ESC}\\word${ESC}]8;;${ESC}\\`)).toBe('word');
  expect(terminalText(`text${ESC}]0;title`)).toBe('text');
  expect(terminalText(`text${ESC}[3`)).toBe('text');
  expect(terminalText(`text${ESC}`)).toBe('text');
});

test('a progress bar is shown as it was last', () => {
  expect(terminalText('10%\r50%\r100%\ndone')).toBe('100%\ndone');
  expect(terminalText('a long line\rshort')).toBe('shortg line');
  expect(terminalText('abc\b\bX')).toBe('aXc');
});

test('line ends of another system are line ends', () => {
  expect(terminalText('one\r\ntwo\r\n')).toBe('one\ntwo\n');
});

test('other control characters show nothing, tabs and letters stay', () => {
  expect(terminalText('a\u0000\u0007b\tc\u0085é')).toBe('ab\tcé');
});
