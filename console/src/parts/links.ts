/** An address that may be followed: only of the web, and nothing that runs. */
export function safeLink(address: string | undefined | null): string | null {
  if (!address) return null;
  try {
    const { protocol, href } = new URL(address);
    return protocol === 'http:' || protocol === 'https:' ? href : null;
  } catch {
    // Relative ones would lead into this console.
    return null;
  }
}

/** What stands in the place of a picture that is not loaded. */
export const pictureName = (alt: string | null | undefined): string =>
  alt === '' ? 'a picture' : (alt ?? 'a picture');
