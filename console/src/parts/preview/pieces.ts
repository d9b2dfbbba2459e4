import { pictureName } from '../links';

/** An element that is shown, with what it holds, or text. */
export type Piece = string | { tag: string; to: string | null; span: Spans; children: Piece[] };

export interface Spans {
  colSpan?: number;
  rowSpan?: number;
}

/** What is shown as it is. Anything else is left away, and what it holds is shown. */
const TAGS = new Set(
  (
    'p br hr ul ol li blockquote pre code em strong del s sub sup table thead tbody tr th td ' +
    'h1 h2 h3 h4 h5 h6 a dl dt dd span div'
  ).split(' '),
);

/** What is left away with what it holds. */
const DROPPED = new Set(
  'script style template iframe object embed noscript svg math title head'.split(' '),
);

/** Between what these hold there is nothing to read. */
const BARE = new Set('table thead tbody tr ul ol dl'.split(' '));

const MOST_DEPTH = 60;

/** As much of a parsed document as this needs, so that it can be tried without a browser. */
export interface Readable {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly childNodes: ArrayLike<Readable>;
  getAttribute?(name: string): string | null;
}

const TEXT = 3;
const ELEMENT = 1;

/** The pieces of a parsed fragment that may be shown. Attributes other than the few here go. */
export function piecesOf(node: Readable, depth = 0): Piece[] {
  return Array.from(node.childNodes).flatMap((child): Piece[] => {
    if (child.nodeType === TEXT) return [child.nodeValue ?? ''];
    if (child.nodeType !== ELEMENT || depth > MOST_DEPTH) return [];
    const tag = child.nodeName.toLowerCase();
    if (DROPPED.has(tag)) return [];
    if (tag === 'img') return [pictureLink(child)];
    const children = piecesOf(child, depth + 1).filter(
      (piece) => !BARE.has(tag) || typeof piece !== 'string' || piece.trim() !== '',
    );
    if (!TAGS.has(tag)) return children;
    const to = tag === 'a' ? (child.getAttribute?.('href') ?? null) : null;
    return [{ tag, to, span: spansOf(child), children }];
  });
}

/** A picture would be asked of another host: its address stands in its place. */
function pictureLink(node: Readable): Piece {
  const alt = node.getAttribute?.('alt');
  const to = node.getAttribute?.('src') ?? null;
  return { tag: 'a', to, span: {}, children: [pictureName(alt)] };
}

function spansOf(node: Readable): Spans {
  const read = (name: string): number => {
    const value = Number(node.getAttribute?.(name) ?? 1);
    return Number.isInteger(value) && value > 1 && value <= 100 ? value : 1;
  };
  const [colSpan, rowSpan] = [read('colspan'), read('rowspan')];
  return { ...(colSpan > 1 ? { colSpan } : {}), ...(rowSpan > 1 ? { rowSpan } : {}) };
}
