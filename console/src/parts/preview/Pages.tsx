import { ActionIcon, VisuallyHidden } from '@mantine/core';
import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react';
import type { PreviewPage } from '../../api/views';
import { partOf } from '../../api/files';
import { Icon } from '../Icon';
import styles from './Pages.module.css';
import { Thumbnails } from './Thumbnails';
import { turnOf } from './turn';
import { useZoom, type Zoom, zoomBy } from './useZoom';
import { ZoomBar } from './ZoomBar';

interface Props {
  preview: string;
  pages: readonly PreviewPage[];
  /** How many the file has; there may be fewer to see. */
  count: number;
}

/** A document page by page, with all of them small at its side. */
export function Pages({ preview, pages, count }: Props) {
  const zoom = useZoom();
  const scroll = useRef<HTMLDivElement>(null);
  const [present, go] = usePresentPage(scroll, pages);
  const numbers = pages.map(({ number }) => number);
  const [previous, next] = [
    turnOf('ArrowLeft', present, numbers),
    turnOf('ArrowRight', present, numbers),
  ];
  const press = (event: KeyboardEvent<HTMLElement>) => {
    if (zoomBy(zoom, event)) return;
    // Of pages that are wider than the panel the arrows move what is seen of them.
    const isWider = event.currentTarget.scrollWidth > event.currentTarget.clientWidth;
    const to = isWider ? null : turnOf(event.key, present, numbers);
    if (to === null) return;
    event.preventDefault();
    go(to);
  };
  return (
    <>
      <ZoomBar zoom={zoom}>
        <ActionIcon.Group>
          <ActionIcon
            variant="default"
            aria-label="Previous page"
            disabled={previous === null}
            onClick={() => previous !== null && go(previous)}
          >
            <Icon name="up" size={12} />
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label="Next page"
            disabled={next === null}
            onClick={() => next !== null && go(next)}
          >
            <Icon name="down" size={12} />
          </ActionIcon>
        </ActionIcon.Group>
        <span role="status">
          Page {present} of {count}
        </span>
      </ZoomBar>
      <div className={styles.both}>
        <Thumbnails preview={preview} pages={pages} present={present} onGo={go} />
        <div
          className={styles.pages}
          ref={scroll}
          tabIndex={0}
          role="region"
          aria-label="Document"
          onKeyDown={press}
        >
          {pages.map((page) => (
            <ShownPage key={page.number} preview={preview} page={page} zoom={zoom} />
          ))}
        </div>
      </div>
    </>
  );
}

interface PageProps {
  preview: string;
  page: PreviewPage;
  zoom: Zoom;
}

/** A picture of a page. Whoever does not see it has its text. */
function ShownPage({ preview, page, zoom }: PageProps) {
  const { number, width, height, text } = page;
  const [tries, setTries] = useState(0);
  const [isBroken, setBroken] = useState(false);
  return (
    <figure className={styles.page} data-page={number}>
      {isBroken ? (
        <button
          type="button"
          onClick={() => {
            setBroken(false);
            setTries(tries + 1);
          }}
        >
          Page {number} did not load. Load it again
        </button>
      ) : (
        <img
          key={tries}
          className={zoom.factor === null ? styles.fitted : styles.sized}
          src={partOf(preview, `pages/${number}`)}
          alt={`Page ${number}`}
          loading="lazy"
          width={width}
          height={height}
          style={zoom.factor === null ? {} : { width: width * zoom.factor }}
          onError={() => setBroken(true)}
        />
      )}
      <VisuallyHidden component="figcaption">{text}</VisuallyHidden>
    </figure>
  );
}

/** The page that is looked at, and a way to go to another. */
function usePresentPage(
  scroll: RefObject<HTMLDivElement | null>,
  pages: readonly PreviewPage[],
): [number, (page: number) => void] {
  const [present, setPresent] = useState(pages[0]?.number ?? 1);
  // The page that was gone to: at the end of a document the ones before are seen as much.
  const asked = useRef<number | null>(null);
  useEffect(() => {
    const box = scroll.current;
    if (box === null) return;
    const shares = new Map<number, number>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, intersectionRect } of entries) {
          const number = Number((target as HTMLElement).dataset.page);
          shares.set(number, intersectionRect.height);
        }
        const [most] = [...shares].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]);
        if (!most || most[1] <= 0) return;
        const isAsked = asked.current !== null && (shares.get(asked.current) ?? 0) > most[1] - 1;
        setPresent(isAsked && asked.current !== null ? asked.current : most[0]);
      },
      { root: box, threshold: [0, 0.25, 0.5, 0.75, 1] },
    );
    for (const page of box.querySelectorAll('[data-page]')) observer.observe(page);
    return () => observer.disconnect();
  }, [scroll, pages]);
  const go = (page: number) => {
    asked.current = page;
    scroll.current?.querySelector(`[data-page="${page}"]`)?.scrollIntoView({ block: 'start' });
    setPresent(page);
  };
  return [present, go];
}
