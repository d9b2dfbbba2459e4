import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { type Accepted, call, type ChatState, type Page, type Thread } from './chat';
import type { MessageKind } from './thread-events';

/** How often the list of threads is asked for, in milliseconds: a stream has one thread alone. */
const LIST_EVERY = 5000;

const ROWS = 50;

export const chatQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'chat'],
    queryFn: () => call<ChatState>('GET', `/workspaces/${workspace}/chat`),
    // Another person may change what keeps code from running.
    refetchInterval: 15_000,
  });

export const threadsKey = (workspace: string) => ['workspace', workspace, 'threads'];

export const threadsQuery = (workspace_id: string, q: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...threadsKey(workspace_id), q ?? ''],
    queryFn: ({ pageParam: cursor }) =>
      call<Page<Thread>>('GET', '/threads', { query: { workspace_id, q, cursor, limit: ROWS } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: LIST_EVERY,
  });

export const threadQuery = (thread: string) =>
  queryOptions({
    queryKey: ['thread', thread],
    queryFn: () => call<Thread>('GET', `/threads/${encodeURIComponent(thread)}`),
  });

export const createThread = (workspace_id: string) =>
  call<Thread>('POST', '/threads', { body: { workspace_id } });

export interface ThreadChange {
  version: number;
  title?: string;
  is_shared?: boolean;
}

export const changeThread = (thread: string, body: ThreadChange) =>
  call<Thread>('PATCH', `/threads/${thread}`, { body });

export const deleteThread = (thread: string) => call<null>('DELETE', `/threads/${thread}`);

export interface NewMessage {
  text: string;
  kind: MessageKind;
  attachments: string[];
}

/** Sends a message. Under the same key it is sent once, however often it is tried. */
export const sendMessage = (thread: string, body: NewMessage, key: string) =>
  call<Accepted>('POST', `/threads/${thread}/messages`, {
    body,
    headers: { 'Idempotency-Key': key },
  });

export const stopReply = (thread: string) => call<unknown>('POST', `/threads/${thread}/stop`);

export const retryMessage = (thread: string, message: string) =>
  call<Accepted>('POST', `/threads/${thread}/messages/${message}/retry`);
