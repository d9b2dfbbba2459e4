import type { ThreadEvent } from '../api/thread-events';
import { reduce } from './reduce';
import { emptyThread, type ThreadState } from './view';

/** A stretch of what has happened in a thread, and where what was before it is asked for. */
export interface Page {
  events: readonly ThreadEvent[];
  cursor: string | null;
}

/** What is known of a thread: from some message on, and as it goes on. */
export interface Known extends Page {
  state: ThreadState;
}

export const nothingKnown: Known = { events: [], cursor: null, state: emptyThread };

/** What a page shows by itself. */
export function known({ events, cursor }: Page): Known {
  const [first] = events;
  const from = first === undefined ? 0 : first.seq - 1;
  return { events, cursor, state: reduce({ ...emptyThread, seq: from }, events) };
}

/** The same after more has happened. */
export function later(before: Known, events: readonly ThreadEvent[]): Known {
  const state = reduce(before.state, events);
  if (state === before.state) return before;
  const fresh = events.filter(({ seq }) => seq > before.state.seq);
  return { ...before, events: [...before.events, ...fresh], state };
}

/**
 * The same with what was before it. All of it is gone through once more: what came later may have
 * changed something that was shown earlier.
 */
export const earlier = (after: Known, page: Page): Known =>
  known({ events: [...page.events, ...after.events], cursor: page.cursor });

/**
 * Where the rest of an exchange is asked for in whose middle what is known begins; nothing where it
 * begins with a message. Only an exchange that is longer than a page has such a rest.
 */
export const restOf = ({ events, cursor }: Page): string | null =>
  events[0]?.type === 'message_sent' ? null : cursor;

/** Asks for what was before, page by page, until what is known begins with a message. */
export async function askEarlier(
  ask: (cursor: string) => Promise<Page>,
  cursor: string,
  show: (page: Page) => void,
): Promise<void> {
  for (let at: string | null = cursor; at !== null;) {
    const page: Page = await ask(at);
    show(page);
    at = restOf(page);
  }
}
