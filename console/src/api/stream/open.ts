import type { ThreadEvent } from '../thread-events';
import { SseReader } from './sse';

/** The server does not give the stream. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(readonly status: number) {
    super(`refused with ${status}`);
  }
}

/** How many events are asked for at once where there is no stream. */
const EVENTS = 500;

/** The events of a thread after a number, as they are stored. */
export async function askThread(
  thread: string,
  after: number,
  signal: AbortSignal,
): Promise<ThreadEvent[]> {
  const id = encodeURIComponent(thread);
  const path = `/api/v1/threads/${id}/history?after=${after}&limit=${EVENTS}`;
  const response = await fetch(path, { signal, cache: 'no-store' });
  if (!response.ok) throw new Refused(response.status);
  const page = (await response.json()) as { items: ThreadEvent[] };
  return page.items;
}

/**
 * The events of a thread after a number, in parts as they come. A part without any is a sign of
 * life.
 */
export async function* openThread(
  thread: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<ThreadEvent[], void> {
  const path = `/api/v1/threads/${encodeURIComponent(thread)}/events?after=${after}`;
  const response = await fetch(path, { signal, cache: 'no-store' });
  if (!response.ok || response.body === null) throw new Refused(response.status);
  yield [];
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new SseReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield events.feed(value).map((data) => JSON.parse(data) as ThreadEvent);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
