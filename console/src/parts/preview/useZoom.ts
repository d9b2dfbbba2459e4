import { useState } from 'react';

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
