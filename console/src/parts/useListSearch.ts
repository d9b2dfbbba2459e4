import { useNavigate, useSearch } from '@tanstack/react-router';

/** What of a list stands in the address, so that back and links work. */
export interface ListSearch {
  /** What rows have to contain. */
  q?: string | undefined;
  /** The name of a column; with a minus in front, the other way round. */
  sort?: string | undefined;
  /** The page. */
  cursor?: string | undefined;
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** Reads an address, whatever somebody has typed into it. */
export const readListSearch = (search: Record<string, unknown>): ListSearch => ({
  q: text(search.q),
  sort: text(search.sort),
  cursor: text(search.cursor),
});

export function useListSearch(): [ListSearch, (change: ListSearch) => void] {
  const search = useSearch({ strict: false, select: readListSearch });
  const navigate = useNavigate();
  const set = (change: ListSearch) => {
    // Back leads to the page before, and not through every letter of a filter.
    const replace = !('cursor' in change);
    void navigate({ to: '.', search: { ...search, ...change }, replace });
  };
  return [search, set];
}
