import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { sessionQuery } from '../api/queries';
import type { Link } from '../api/stream/line';
import { watchThread } from '../api/stream/watch';
import { reduce } from './reduce';
import { emptyThread, type ThreadState } from './view';

interface Watched {
  state: ThreadState;
  link: Link;
}

/** What there is of a thread, as it goes on. The component has to be keyed by the thread. */
export function useThread(thread: string, user: string): Watched {
  const [watched, setWatched] = useState<Watched>({ state: emptyThread, link: 'connecting' });
  const queries = useQueryClient();
  useEffect(() => {
    let state = emptyThread;
    return watchThread({ user, thread, after: () => state.seq }, ({ events, link }) => {
      state = reduce(state, events);
      setWatched({ state, link });
      // Whoever is asked finds the session gone and leads to where one signs in.
      if (link === 'signed_out') void queries.invalidateQueries(sessionQuery);
    });
  }, [thread, user, queries]);
  return watched;
}
