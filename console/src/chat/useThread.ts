import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { sessionQuery } from '../api/queries';
import type { Link } from '../api/stream/line';
import { watchThread } from '../api/stream/watch';
import { historyPage } from '../api/threads';
import { earlier, type Known, known, later, nothingKnown, wholePage } from './pages';
import type { ThreadState } from './view';

/** What was before what is shown. */
export interface Earlier {
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
  useEffect(() => {
    const left = new AbortController();
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
    wholePage((cursor) => historyPage(thread, cursor, left.signal))
      .then((page) => {
        if (!left.signal.aborted) show(known(page));
      })
      // Whatever is the matter, the stream finds it too, and says it; else it tells everything.
      .catch(() => undefined)
      .finally(follow);
    return () => {
      left.abort();
      leave?.();
    };
  }, [thread, user, queries, show]);
  const { mutate, isPending, error } = useMutation({
    mutationFn: (cursor: string) => wholePage((at) => historyPage(thread, at), cursor),
    onSuccess: (page) => show(earlier(present.current, page)),
  });
  const { cursor } = shown;
  const before = cursor === null ? null : { isAsked: isPending, error, ask: () => mutate(cursor) };
  return { state: shown.state, link, earlier: before };
}
