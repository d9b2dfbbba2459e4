/** Where a box that scrolls is, in pixels. */
export interface Extent {
  top: number;
  /** Of all that is in it. */
  height: number;
  /** Of what is seen of it. */
  view: number;
}

/** How near to the end counts as there. */
const NEAR = 60;

export const extentOf = ({ scrollTop, scrollHeight, clientHeight }: HTMLElement): Extent => ({
  top: scrollTop,
  height: scrollHeight,
  view: clientHeight,
});

const left = ({ top, height, view }: Extent) => height - top - view;

export const isEnd = (extent: Extent): boolean => left(extent) <= 1;

/** Whether the newest is kept in sight after a box has scrolled. */
export function staysAtEnd(wasAtEnd: boolean, before: Extent, now: Extent): boolean {
  // Where there is less than before, the browser moves up by itself.
  if (isEnd(now)) return true;
  // Whoever goes up, however little, wants to read there.
  if (now.top < before.top) return false;
  return wasAtEnd || left(now) < NEAR;
}
