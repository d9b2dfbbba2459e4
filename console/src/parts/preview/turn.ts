/** The page that a key leads to from another; nothing where it leads to none. */
export function turnOf(key: string, present: number, pages: readonly number[]): number | null {
  const at = pages.indexOf(present);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: pages.length - 1 }[key];
  const page = to === undefined ? undefined : pages[to];
  return page === undefined || page === present ? null : page;
}
