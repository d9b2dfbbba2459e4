import { type RefObject, useEffect, useRef, useState } from 'react';

/** How near to the end counts as there, in pixels. */
const NEAR = 60;

interface Stick {
  scroll: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  onScroll: () => void;
  toEnd: () => void;
}

/** Keeps the newest in sight while it grows, unless somebody has gone up to read. */
export function useStickToEnd(): Stick {
  const scroll = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isStuck = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    const box = scroll.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    isStuck.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    setAtEnd(isStuck.current);
  };
  useEffect(() => {
    if (content.current === null) return;
    const observer = new ResizeObserver(() => {
      if (isStuck.current) toEnd();
    });
    observer.observe(content.current);
    return () => observer.disconnect();
  }, []);
  return { scroll, content, isAtEnd, onScroll, toEnd };
}
