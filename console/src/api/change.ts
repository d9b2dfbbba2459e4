import {
  type QueryKey,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from '@tanstack/react-query';
import { useRef } from 'react';

/** How a change is going, whatever it changes. */
export type Change = Pick<UseMutationResult, 'isPending' | 'error'>;

/** A change that takes nothing more to be made. */
export type PlainChange = Change & { mutate: UseMutationResult<unknown, Error, void>['mutate'] };

/**
 * A change through the API, after which what it touches is read again: also when it was refused,
 * since the reason may be that things are not as the page shows them. While it is on its way the
 * same is not asked for again: the second click of two comes before the page shows the first.
 */
export function useChange<Output, Input = void>(
  change: (input: Input) => Promise<Output>,
  touches: readonly QueryKey[],
) {
  const queries = useQueryClient();
  const asked = useRef(new Set<string>());
  const mutation = useMutation({
    mutationFn: change,
    onSettled: async (_output, _error, input) => {
      await Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })));
      asked.current.delete(keyOf(input));
    },
  });
  const mutate: typeof mutation.mutate = (...wish) => {
    const key = keyOf(wish[0]);
    if (asked.current.has(key)) return;
    asked.current.add(key);
    mutation.mutate(...wish);
  };
  return { ...mutation, mutate };
}

/** Tells one wish from another; of a change that takes nothing there is one. */
const keyOf = (input: unknown): string => (input === undefined ? '' : JSON.stringify(input));
