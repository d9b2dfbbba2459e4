import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';

/** A change through the API, after which what it touches is read again. */
export function useChange<Input, Output>(
  change: (input: Input) => Promise<Output>,
  touches: readonly QueryKey[],
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () =>
      Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}
