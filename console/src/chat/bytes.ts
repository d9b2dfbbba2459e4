/** Base64 as bytes; nothing where it is none. */
export function fromBase64(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(base64.replace(/\s/g, ''));
    return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

/** How many bytes at the end begin a character that is not whole. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    // The first byte of a character says how many it has.
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}

export interface Decoded {
  text: string;
  /** Bytes of a character of which the others have not come, each as a letter. */
  rest: string;
}

/** Reads more bytes of a stream that may be cut in the middle of a character. */
export function decodeMore(rest: string, more: Uint8Array): Decoded {
  const bytes = new Uint8Array(rest.length + more.length);
  bytes.set(Uint8Array.from(rest, (letter) => letter.charCodeAt(0)));
  bytes.set(more, rest.length);
  const left = unfinished(bytes);
  const whole = bytes.subarray(0, bytes.length - left);
  return {
    text: new TextDecoder().decode(whole),
    rest: String.fromCharCode(...bytes.subarray(bytes.length - left)),
  };
}
