import { createElement, type ReactNode, useMemo } from 'react';
import markdown from '../Markdown.module.css';
import { OutLink } from '../OutLink';
import { type Piece, piecesOf } from './pieces';

/**
 * A fragment of HTML that the server made of markdown and cleaned: made anew here of known
 * elements, so that nothing else of it reaches the page.
 */
export function Fragment({ html }: { html: string }) {
  const pieces = useMemo(() => {
    // A document that is not shown: nothing in it runs or is loaded.
    const { body } = new DOMParser().parseFromString(html, 'text/html');
    return piecesOf(body);
  }, [html]);
  return <div className={markdown.markdown}>{pieces.map(shown)}</div>;
}

/** The page has the first headings; those of a text stand below them. */
const LOWER: Record<string, string> = { h1: 'h3', h2: 'h4', h3: 'h5', h4: 'h6', h5: 'h6' };

const EMPTY = ['br', 'hr'];

function shown(piece: Piece, index: number): ReactNode {
  if (typeof piece === 'string') return piece;
  const { tag, to, span } = piece;
  const children = piece.children.map(shown);
  if (tag === 'a') {
    return (
      <OutLink key={index} to={to ?? undefined}>
        {children}
      </OutLink>
    );
  }
  if (EMPTY.includes(tag)) return createElement(tag, { key: index });
  if (tag === 'table') {
    return (
      <div key={index} className={markdown.scroll} role="region" aria-label="Table" tabIndex={0}>
        <table>{children}</table>
      </div>
    );
  }
  const more = tag === 'pre' ? { tabIndex: 0 } : span;
  return createElement(LOWER[tag] ?? tag, { key: index, ...more }, children);
}
