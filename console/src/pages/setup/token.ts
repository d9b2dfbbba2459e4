/** What the link has after `#token=`: a browser sends no fragment, so no log ever has it. */
export function setupToken(): string | null {
  return new URLSearchParams(window.location.hash.slice(1)).get('token');
}
