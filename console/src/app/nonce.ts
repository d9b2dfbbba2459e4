import { setNonce } from 'get-nonce';

const meta = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]');

/** What the server allows style elements by, anew with each page that it sends. */
export const nonce = meta?.content ?? '';

// The part that stops the page from scrolling behind a dialog asks here.
setNonce(nonce);
