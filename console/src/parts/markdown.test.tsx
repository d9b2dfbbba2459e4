import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { ErrorBoundary } from './ErrorBoundary';
import { Markdown } from './Markdown';
import { isReadable, MOST_CHARACTERS, MOST_DEPTH } from './markdownLimits';
import { MarkdownText } from './MarkdownText';

test('usual markdown is read', () => {
  for (const text of [
    '',
    '# Title\n\n- one\n  - two\n    1. three\n\n> said\n> > before',
    '**a **b '.repeat(1000),
    '---\n***\n- - -',
    '>'.repeat(MOST_DEPTH),
    '> text\n'.repeat(10_000),
    `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(1000)}`,
    '|'.repeat(10_000),
  ]) {
    expect(isReadable(text), text.slice(0, 20)).toBe(true);
  }
});

test('what nests too deep, or is too long, is not', () => {
  for (const text of [
    `${'>'.repeat(10_000)}x`,
    `fine\n\n${'> '.repeat(10_000)}x`,
    `${'- '.repeat(10_000)}x`,
    `${'1. > '.repeat(5_000)}x`,
    'x'.repeat(MOST_CHARACTERS + 1),
    `fine\r${'>'.repeat(10_000)}x`,
    `${'|a'.repeat(2000)}\n${'|-'.repeat(2000)}\n${'x\n'.repeat(10_000)}`,
    `${'|a'.repeat(2000)}\r${'|-'.repeat(2000)}\r${'x\r'.repeat(10_000)}`,
  ]) {
    expect(isReadable(text), text.slice(0, 20)).toBe(false);
  }
});

test('the deepest that is read can be', () => {
  const html = renderToStaticMarkup(
    createElement(MarkdownText, { text: `${'>'.repeat(MOST_DEPTH)}x` }),
  );
  expect(html.split('<blockquote>')).toHaveLength(MOST_DEPTH + 1);
});

test('what cannot be read stands there as it was written', () => {
  const text = `${'>'.repeat(10_000)}<b>x`;
  const html = renderToStaticMarkup(createElement(Markdown, { text }));
  expect(html).toContain(`${'&gt;'.repeat(10_000)}&lt;b&gt;x</div>`);
});

test('a piece that fails is replaced alone', () => {
  expect(ErrorBoundary.getDerivedStateFromError()).toEqual({ hasFailed: true });
  const boundary = new ErrorBoundary({ fallback: 'plain', children: 'rich' });
  expect(boundary.render()).toBe('rich');
  boundary.state = { hasFailed: true };
  expect(boundary.render()).toBe('plain');
});
