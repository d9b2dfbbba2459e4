import {
  type MouseEvent,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { type Extent, extentOf, isEnd, staysAtEnd } from './stick';

interface Stick {
  scroll: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  onScroll: () => void;
  /** Whoever unfolds something wants to read it from its beginning. */
  onClickCapture: (event: MouseEvent) => void;
  toEnd: () => void;
  /** Whoever asks for more above goes on reading where they are. */
  keepPlace: () => void;
}

/**
 * Keeps the newest in sight while it grows, unless somebody has gone up to read. `first` names what
 * stands uppermost.
 */
export function useStickToEnd(first: string | undefined): Stick {
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
  /** How far from the end somebody reads who has asked for more above. */
  const fromEnd = useRef<number | null>(null);
  const keepPlace = () => {
    const box = scroll.current;
    if (box === null) return;
    fromEnd.current = box.scrollHeight - box.scrollTop;
    isStuck.current = false;
  };
  useLayoutEffect(() => {
    const box = scroll.current;
    if (box === null || fromEnd.current === null) return;
    box.scrollTop = box.scrollHeight - fromEnd.current;
    fromEnd.current = null;
    settle(box, false);
  }, [first, settle]);
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
  return { scroll, content, isAtEnd, onScroll, onClickCapture, toEnd, keepPlace };
}
