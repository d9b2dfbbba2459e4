/** What moves a cursor, changes how others are read, or cannot be seen. */
const DECEPTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A name of the protocol, as people know it; one that is no UTF-8 stays as it is written there. */
export function fileName(encoded: string): string {
  try {
    const escaped = (one: string) => `\\u{${one.codePointAt(0)?.toString(16)}}`;
    return decodeURIComponent(encoded).replace(DECEPTIVE, escaped);
  } catch {
    return encoded;
  }
}
