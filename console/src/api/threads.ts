import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answer, api } from './client';
import type { MessageKind, ThreadEvent } from './thread-events';

/** How often the list of threads is asked for, in milliseconds: a stream has one thread alone. */
const LIST_EVERY = 5000;

const ROWS = 50;

export const chatQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'chat'],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{workspace}/chat', { params: { path: { workspace } } })),
    // Another person may change what keeps code from running.
    refetchInterval: 15_000,
  });

export const threadsKey = (workspace: string) => ['workspace', workspace, 'threads'];

export const threadsQuery = (workspace_id: string, q: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...threadsKey(workspace_id), q ?? ''],
    queryFn: ({ pageParam: cursor }) =>
      answer(
        api.GET('/api/v1/threads', { params: { query: { workspace_id, q, cursor, limit: ROWS } } }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: LIST_EVERY,
    // While somebody types what is there stays until there is something else.
    placeholderData: keepPreviousData,
  });

export const threadQuery = (thread: string) =>
  queryOptions({
    queryKey: ['thread', thread],
    queryFn: () => answer(api.GET('/api/v1/threads/{thread}', { params: { path: { thread } } })),
  });

/** How many events of a thread are asked for at once. */
const EVENTS = 300;

/** A page of what has happened in a thread, the newest one or that before a cursor. */
export async function historyPage(
  thread: string,
  cursor: string | undefined,
  signal?: AbortSignal,
): Promise<{ events: ThreadEvent[]; cursor: string | null }> {
  const page = await answer(
    api.GET('/api/v1/threads/{thread}/history', {
      params: { path: { thread }, query: { cursor, limit: EVENTS } },
      signal,
    }),
  );
  return { events: page.items, cursor: page.next_cursor ?? null };
}

export const createThread = (workspace_id: string) =>
  answer(api.POST('/api/v1/threads', { body: { workspace_id } }));

export interface ThreadChange {
  version: number;
  title?: string;
  is_shared?: boolean;
}

export const changeThread = (thread: string, body: ThreadChange) =>
  answer(api.PATCH('/api/v1/threads/{thread}', { params: { path: { thread } }, body }));

export const deleteThread = (thread: string) =>
  answer(api.DELETE('/api/v1/threads/{thread}', { params: { path: { thread } } }));

export interface NewMessage {
  text: string;
  kind: MessageKind;
  attachments: string[];
}

/** Sends a message. Under the same key it is sent once, however often it is tried. */
export const sendMessage = (thread: string, body: NewMessage, key: string) =>
  answer(
    api.POST('/api/v1/threads/{thread}/messages', {
      params: { path: { thread }, header: { 'Idempotency-Key': key } },
      body,
    }),
  );

/** Stops what runs in a thread; where a reply is named, only that one. */
export const stopReply = (thread: string, reply?: string) =>
  answer(
    api.POST('/api/v1/threads/{thread}/stop', {
      params: { path: { thread }, query: reply === undefined ? {} : { reply_id: reply } },
    }),
  );

export const retryMessage = (thread: string, message: string) =>
  answer(
    api.POST('/api/v1/threads/{thread}/messages/{message}/retry', {
      params: { path: { thread, message } },
    }),
  );
