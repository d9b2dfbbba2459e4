import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Failure } from '../api/failure';

const isSignedOut = (error: unknown) => error instanceof Failure && error.isSignedOut;

/** The store of what was read. `onSignedOut` is called when any call finds the session gone. */
export function makeQueries(onSignedOut: () => void): QueryClient {
  const onError = (error: unknown) => {
    if (isSignedOut(error)) onSignedOut();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        // The server may be on this machine: no network is no reason not to ask it.
        networkMode: 'always',
        // What the server refuses once it refuses again; only a lost connection is tried anew.
        retry: (count, error) => error instanceof Failure && error.status === 0 && count < 2,
        // So a lost connection is told within a second or two.
        retryDelay: 500,
        staleTime: 2000,
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });
}
