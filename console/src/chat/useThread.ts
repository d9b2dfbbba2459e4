import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { sessionQuery } from '../api/queries';
import type { Link } from '../api/stream/line';
import { watchThread } from '../api/stream/watch';
import { historyPage } from '../api/threads';
import { askEarlier, earlier, type Known, known, later, nothingKnown, restOf } from './pages';
import type { ThreadState } from './view';

/** What was before what is shown. */
export interface Earlier {
  /** Where it is asked for: another place once more of it is shown. */
  cursor: string;
  isAsked: boolean;
  error: Error | null;
  ask: () => void;
}

interface Watched {
  state: ThreadState;
  link: Link;
  /** Nothing where the thread is shown from its beginning. */
  earlier: Earlier | null;
}

/**
 * What there is of a thread from its newest page on, as it goes on. The component has to be keyed
 * by the thread.
 */
export function useThread(thread: string, user: string): Watched {
  const [shown, setShown] = useState(nothingKnown);
  const [link, setLink] = useState<Link>('connecting');
  const present = useRef(nothingKnown);
  const queries = useQueryClient();
  const show = useCallback((next: Known) => {
    present.current = next;
    setShown(next);
  }, []);
  /** Aborted when nobody looks at it any more. */
  const watching = useRef<AbortSignal>(undefined);
  const { mutate, isPending, error } = useMutation({
    mutationFn: (cursor: string) =>
      askEarlier(
        (at) => historyPage(thread, at, watching.current),
        cursor,
        (page) => show(earlier(present.current, page)),
      ),
  });
  useEffect(() => {
    const left = new AbortController();
    watching.current = left.signal;
    let leave: (() => void) | null = null;
    const follow = () => {
      if (left.signal.aborted) return;
      const after = () => present.current.state.seq;
      leave = watchThread({ user, thread, after }, ({ events, link: next }) => {
        show(later(present.current, events));
        setLink(next);
        // Whoever is asked finds the session gone and leads to where one signs in.
        if (next === 'signed_out') void queries.invalidateQueries(sessionQuery);
      });
    };
    historyPage(thread, undefined, left.signal)
      .then((page) => {
        if (left.signal.aborted) return;
        show(known(page));
        const rest = restOf(page);
        if (rest !== null) mutate(rest);
      })
      // Whatever is the matter, the stream finds it too, and says it; else it tells everything.
      .catch(() => undefined)
      .finally(follow);
    return () => {
      left.abort();
      leave?.();
    };
  }, [thread, user, queries, show, mutate]);
  const { cursor } = shown;
  const ask = () => cursor !== null && mutate(cursor);
  const before = cursor === null ? null : { cursor, isAsked: isPending, error, ask };
  return { state: shown.state, link, earlier: before };
}
