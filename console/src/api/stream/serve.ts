import { Hub } from './hub';
import type { News } from './line';
import { askThread, openThread } from './open';

/** What a page says to the hub. */
export type Ask =
  | { do: 'watch'; id: string; user: string; thread: string; after: number }
  | { do: 'leave'; id: string }
  | { do: 'hurry' };

export interface Answer extends News {
  id: string;
}

const SWEEP_MS = 15_000;

const later = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Makes what serves the pages that connect to it. */
export function makeServe(): (port: MessagePort) => void {
  const hub = new Hub({ open: openThread, ask: askThread, later });
  setInterval(() => hub.sweep(), SWEEP_MS);
  return (port) => {
    port.onmessage = ({ data }: MessageEvent<Ask>) => {
      switch (data.do) {
        case 'watch': {
          const { id } = data;
          hub.watch(id, data, (news) => port.postMessage({ id, ...news } satisfies Answer));
          break;
        }
        case 'leave':
          hub.leave(data.id);
          break;
        case 'hurry':
          hub.hurry();
          break;
      }
    };
  };
}
