import { expect, test } from 'vitest';
import { bytes } from './bytes';
import { fileName } from './fileName';
import { ending, hasPicture, typeName } from './fileType';
import { ago, countdown, span, took } from './time';

const now = Date.parse('2026-03-01T12:00:00Z');
const before = (seconds: number) => new Date(now - seconds * 1000).toISOString();

test('an age is told in the largest unit that fits', () => {
  expect(ago(before(45), now)).toBe('45 seconds ago');
  expect(ago(before(60), now)).toBe('1 minute ago');
  expect(ago(before(3 * 3600 + 5), now)).toBe('3 hours ago');
  expect(ago(before(26 * 3600), now)).toBe('1 day ago');
  expect(ago(before(800 * 86400), now)).toBe('2 years ago');
});

test('a clock that is behind does not put things into the future', () => {
  expect(ago(before(-90), now)).toBe('just now');
});

test('a countdown shows hours only where there are some, and stops at zero', () => {
  expect(countdown(now + 3_909_000, now)).toBe('1:05:09');
  expect(countdown(now + 270_000, now)).toBe('4:30');
  expect(countdown(now + 6_500, now)).toBe('0:07');
  expect(countdown(now - 1000, now)).toBe('0:00');
});

test('a span keeps seconds where minutes would round', () => {
  expect(span(90)).toBe('90 s');
  expect(span(600)).toBe('10 min');
  expect(span(28_800)).toBe('8 h');
  expect(span(0)).toBe('0 s');
});

test('bytes are told in binary units', () => {
  expect(bytes(0)).toBe('0 B');
  expect(bytes(1023)).toBe('1023 B');
  expect(bytes(1536)).toBe('1.5 KiB');
  expect(bytes(310 * 1024 * 1024)).toBe('310 MiB');
  expect(bytes(1024 ** 3)).toBe('1 GiB');
});

test('what was taken is told with a part of a second only where that matters', () => {
  expect(took(4210)).toBe('4.2 s');
  expect(took(0)).toBe('0.0 s');
  expect(took(59_400)).toBe('59 s');
  expect(took(65_000)).toBe('1 min 5 s');
});

test('a file is called by its ending, else by what it holds', () => {
  expect(typeName('deck.PPTX', 'application/zip')).toBe('Presentation');
  expect(typeName('data', 'application/x-thing')).toBe('application/x-thing');
  expect(ending('archive.tar.gz')).toBe('gz');
  expect(ending('a.verylongending')).toBe('');
  expect(hasPicture('photo', 'image/png')).toBe(true);
  expect(hasPicture('a.csv', 'text/csv')).toBe(false);
});

test('a name of the protocol is read as people know it', () => {
  expect(fileName('a%20b/%C3%9Cbung.csv')).toBe('a b/Übung.csv');
  expect(fileName('%E2%80%AEvsc.exe')).toBe('\\u{202e}vsc.exe');
  expect(fileName('%FF.csv')).toBe('%FF.csv');
});
