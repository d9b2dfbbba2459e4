import { randomId } from '../random';
import type { Hear } from './line';
import { type Answer, type Ask, makeServe } from './serve';

/** How often a page that is seen says that it still watches. */
const RENEW_MS = 15_000;

type Post = (ask: Ask) => void;

const hears = new Map<string, Hear>();

let post: Post | null = null;

/** Connects to the hub of this browser, or makes one for this page where browsers have no such. */
function connect(): Post {
  const hear = ({ data }: MessageEvent<Answer>) => hears.get(data.id)?.(data);
  if ('SharedWorker' in window) {
    const worker = new SharedWorker(new URL('./hub.worker.ts', import.meta.url), {
      type: 'module',
      name: 'glovebox-threads',
    });
    worker.port.onmessage = hear;
    return (ask) => worker.port.postMessage(ask);
  }
  const channel = new MessageChannel();
  makeServe()(channel.port2);
  channel.port1.onmessage = hear;
  return (ask) => channel.port1.postMessage(ask);
}

interface Wanted {
  user: string;
  thread: string;
  /** The number of the last event that is there already. */
  after: () => number;
}

/** Watches a thread for as long as the page is seen; gives what ends it. */
export function watchThread({ user, thread, after }: Wanted, hear: Hear): () => void {
  post ??= connect();
  const send = post;
  const id = randomId();
  hears.set(id, hear);
  const leave = () => send({ do: 'leave', id });
  const renew = () => {
    if (document.visibilityState === 'visible') {
      send({ do: 'watch', id, user, thread, after: after() });
    }
  };
  const hurry = () => send({ do: 'hurry' });
  renew();
  const timer = setInterval(renew, RENEW_MS);
  document.addEventListener('visibilitychange', renew);
  window.addEventListener('pageshow', renew);
  window.addEventListener('pagehide', leave);
  window.addEventListener('online', hurry);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', renew);
    window.removeEventListener('pageshow', renew);
    window.removeEventListener('pagehide', leave);
    window.removeEventListener('online', hurry);
    hears.delete(id);
    leave();
  };
}
