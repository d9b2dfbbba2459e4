import { readPreview } from '../../parts/preview/usePreview';

/** What of the chat stands in the address beside the thread. */
export interface ChatSearch {
  /** What titles of threads have to contain. */
  q?: string;
  preview?: string;
}

export const readChatSearch = (search: Record<string, unknown>): ChatSearch => ({
  ...(typeof search.q === 'string' && search.q !== '' ? { q: search.q } : {}),
  ...readPreview(search),
});
