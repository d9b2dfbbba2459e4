import { type BrowserContext, expect } from '@playwright/test';

/** Listens to what a browser asks for and complains of, and gives what must not have been. */
export function watch(context: BrowserContext, address: string): () => void {
  const wrong: string[] = [];
  const host = new URL(address).host;
  context.on('request', (request) => {
    const url = new URL(request.url());
    const isLocal = url.protocol === 'blob:' || url.protocol === 'data:';
    if (!isLocal && url.host !== host) wrong.push(`a request to ${url.host}`);
  });
  context.on('console', (message) => {
    const text = message.text();
    if (text.includes('Content Security Policy')) wrong.push(text);
  });
  context.on('weberror', (error) => wrong.push(error.error().message));
  return () => expect(wrong, 'other hosts, refused by the policy, or thrown').toEqual([]);
}
