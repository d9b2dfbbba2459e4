import { type MouseEvent, type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { type Extent, extentOf, isEnd, staysAtEnd } from './stick';

interface Stick {
  scroll: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  onScroll: () => void;
  /** Whoever unfolds something wants to read it from its beginning. */
  onClickCapture: (event: MouseEvent) => void;
  toEnd: () => void;
  /** How far from the end somebody reads. */
  measure: () => number;
  /** Goes on reading so far from the end, where more has come above. */
  keepPlace: (fromEnd: number) => void;
}

/** Keeps the newest in sight while it grows, unless somebody has gone up to read. */
export function useStickToEnd(): Stick {
  const scroll = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isStuck = useRef(true);
  const before = useRef<Extent>({ top: 0, height: 0, view: 0 });
  const [isAtEnd, setAtEnd] = useState(true);
  const settle = useCallback((box: HTMLElement, stuck: boolean) => {
    if (stuck) box.scrollTop = box.scrollHeight;
    isStuck.current = stuck;
    before.current = extentOf(box);
    setAtEnd(stuck);
  }, []);
  const toEnd = useCallback(() => {
    if (scroll.current) settle(scroll.current, true);
  }, [settle]);
  const measure = () => {
    const box = scroll.current;
    return box === null ? 0 : box.scrollHeight - box.scrollTop;
  };
  const keepPlace = (fromEnd: number) => {
    const box = scroll.current;
    if (box === null) return;
    box.scrollTop = box.scrollHeight - fromEnd;
    settle(box, isStuck.current);
  };
  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    const now = extentOf(box);
    isStuck.current = staysAtEnd(isStuck.current, before.current, now);
    before.current = now;
    setAtEnd(isStuck.current);
  };
  const onClickCapture = ({ target }: MouseEvent) => {
    const fold = target instanceof Element ? target.closest('[aria-expanded="false"]') : null;
    if (fold) isStuck.current = false;
  };
  useEffect(() => {
    const box = scroll.current;
    if (box === null || content.current === null) return;
    // Whoever is near the end and not there has gone up: what comes does not take them along.
    const observer = new ResizeObserver(() => settle(box, isStuck.current || isEnd(extentOf(box))));
    observer.observe(content.current);
    // What is written below takes room from it.
    observer.observe(box);
    return () => observer.disconnect();
  }, [settle]);
  return { scroll, content, isAtEnd, onScroll, onClickCapture, toEnd, measure, keepPlace };
}
