import { type KeyboardEvent, useEffect, useRef } from 'react';
import type { PreviewPage } from '../../api/views';
import { partOf } from '../../api/files';
import styles from './Pages.module.css';
import { turnOf } from './turn';

interface Props {
  preview: string;
  pages: readonly PreviewPage[];
  /** The number of the page that is looked at. */
  present: number;
  onGo: (page: number) => void;
}

/** All pages made small. Tab comes to one of them, and arrows lead to the others. */
export function Thumbnails({ preview, pages, present, onGo }: Props) {
  const list = useRef<HTMLElement>(null);
  const thumbnail = (page: number) =>
    list.current?.querySelector<HTMLElement>(`[data-thumbnail="${page}"]`);
  useEffect(() => {
    list.current
      ?.querySelector(`[data-thumbnail="${present}"]`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [present]);
  const press = (event: KeyboardEvent) => {
    const key = { ArrowDown: 'ArrowRight', ArrowUp: 'ArrowLeft' }[event.key] ?? event.key;
    const to = turnOf(
      key,
      present,
      pages.map(({ number }) => number),
    );
    if (to === null) return;
    event.preventDefault();
    onGo(to);
    thumbnail(to)?.focus();
  };
  return (
    <nav className={styles.thumbnails} aria-label="Pages" ref={list} onKeyDown={press}>
      {pages.map(({ number, width, height }) => (
        <button
          key={number}
          type="button"
          className={styles.thumbnail}
          data-thumbnail={number}
          tabIndex={number === present ? 0 : -1}
          aria-current={number === present ? 'page' : undefined}
          aria-label={`Page ${number}`}
          onClick={() => onGo(number)}
        >
          <img
            src={partOf(preview, `thumbnails/${number}`)}
            alt=""
            loading="lazy"
            width={width}
            height={height}
          />
          <span aria-hidden="true">{number}</span>
        </button>
      ))}
    </nav>
  );
}
