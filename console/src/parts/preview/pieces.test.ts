import { expect, test } from 'vitest';
import { piecesOf, type Readable } from './pieces';

const text = (nodeValue: string): Readable => ({
  nodeType: 3,
  nodeName: '#text',
  nodeValue,
  childNodes: [],
});

const element = (
  nodeName: string,
  attributes: Record<string, string>,
  ...childNodes: Readable[]
): Readable => ({
  nodeType: 1,
  nodeName,
  nodeValue: null,
  childNodes,
  getAttribute: (name) => attributes[name] ?? null,
});

const pieces = (...childNodes: Readable[]) => piecesOf(element('BODY', {}, ...childNodes));

test('words and their order are kept, attributes are not', () => {
  const bold = element('STRONG', { onclick: 'x()', style: 'color:red', id: 'root' }, text('b'));
  expect(pieces(element('P', {}, text('a'), bold))).toEqual([
    {
      tag: 'p',
      to: null,
      span: {},
      children: ['a', { tag: 'strong', to: null, span: {}, children: ['b'] }],
    },
  ]);
});

test('what could run or load is left away with what it holds', () => {
  for (const tag of ['SCRIPT', 'STYLE', 'IFRAME', 'OBJECT', 'svg', 'math', 'TEMPLATE']) {
    expect(pieces(element(tag, { src: 'https://x.example' }, text('x'))), tag).toEqual([]);
  }
});

test('of an element that is not known its words are shown', () => {
  expect(pieces(element('FORM', { action: '/x' }, element('BUTTON', {}, text('go'))))).toEqual([
    'go',
  ]);
});

test('a picture is a link to where it is', () => {
  expect(pieces(element('IMG', { src: 'https://x.example/a.png', alt: 'A' }))).toMatchObject([
    { tag: 'a', to: 'https://x.example/a.png', children: ['A'] },
  ]);
});

test('something nested without end is cut', () => {
  let node = text('deep');
  for (let depth = 0; depth < 500; depth += 1) node = element('DIV', {}, node);
  expect(JSON.stringify(pieces(node))).not.toContain('deep');
});
