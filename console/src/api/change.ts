import {
  type QueryKey,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from '@tanstack/react-query';

/** How a change is going, whatever it changes. */
export type Change = Pick<UseMutationResult, 'isPending' | 'error'>;

/** A change that takes nothing more to be made. */
export type PlainChange = Change & { mutate: UseMutationResult<unknown, Error, void>['mutate'] };

/**
 * A change through the API, after which what it touches is read again: also when it was refused,
 * since the reason may be that things are not as the page shows them.
 */
export function useChange<Output, Input = void>(
  change: (input: Input) => Promise<Output>,
  touches: readonly QueryKey[],
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}
