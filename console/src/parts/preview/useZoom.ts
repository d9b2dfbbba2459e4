import { type KeyboardEvent, useState } from 'react';

const STEPS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3];

export interface Zoom {
  /** Times the size of what is shown; nothing where it fits the width. */
  factor: number | null;
  isLargest: boolean;
  isSmallest: boolean;
  closer: () => void;
  farther: () => void;
  fit: () => void;
}

export function useZoom(): Zoom {
  const [factor, setFactor] = useState<number | null>(null);
  const present = factor ?? 1;
  return {
    factor,
    isLargest: present >= (STEPS.at(-1) ?? 1),
    isSmallest: present <= (STEPS[0] ?? 1),
    closer: () => setFactor(STEPS.find((step) => step > present) ?? present),
    farther: () => setFactor(STEPS.findLast((step) => step < present) ?? present),
    fit: () => setFactor(null),
  };
}

/** Zooms by a key where it is one for that, and says so. With Control it is the browser's. */
export function zoomBy(zoom: Zoom, event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const step = { '+': zoom.closer, '-': zoom.farther, '0': zoom.fit }[event.key];
  step?.();
  if (step) event.preventDefault();
  return step !== undefined;
}
