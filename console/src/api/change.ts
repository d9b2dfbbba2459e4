import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';

/**
 * A change through the API, after which what it touches is read again: also when it was refused,
 * since the reason may be that things are not as the page shows them.
 */
export function useChange<Input, Output>(
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
