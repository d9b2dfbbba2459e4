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
 * A page, and those before it until one begins with a message: only of an exchange that is longer
 * than a page one begins in its middle.
 */
export async function wholePage(
  ask: (cursor: string | undefined) => Promise<Page>,
  cursor?: string,
): Promise<Page> {
  let page = await ask(cursor);
  while (page.cursor !== null && page.events[0]?.type !== 'message_sent') {
    const before = await ask(page.cursor);
    page = { events: [...before.events, ...page.events], cursor: before.cursor };
  }
  return page;
}
