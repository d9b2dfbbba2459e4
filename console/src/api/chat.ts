import { failureOf, unreachable } from './failure';
import type { Denied } from './views';

/** One page of a list. */
export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

export interface Thread {
  id: string;
  workspace_id: string;
  title: string;
  owner: { user_id?: string | null; name: string };
  is_shared: boolean;
  is_own: boolean;
  may_write: boolean;
  /** Whether the person may rename, share and delete it. */
  may_change: boolean;
  version: number;
  running_reply?: string | null;
  last_seq: number;
  created_at: string;
  active_at: string;
}

export interface Attachment {
  id: string;
  name: string;
  bytes: number;
  sha256: string;
  media_type: string;
  created_at: string;
}

export interface UploadLimits {
  max_file_bytes: number;
  max_total_bytes: number;
  max_files: number;
}

/** What can be done with chat in a workspace, and how much of it. */
export interface ChatState {
  may_write: boolean;
  has_model: boolean;
  model_name?: string | null;
  limits: UploadLimits;
  code_execution?: Denied | null;
  execution_seconds: number;
}

export interface KnowledgeFile {
  id: string;
  name: string;
  bytes: number;
  media_type: string;
  added_by: string;
  created_at: string;
}

export interface Artifact {
  id: string;
  sandbox_id?: string | null;
  name: string;
  version: number;
  bytes: number;
  media_type: string;
  created_at: string;
  thread_id?: string | null;
  thread_title?: string | null;
  is_newest: boolean;
  may_restore: boolean;
}

export interface Accepted {
  message_id: string;
  reply_id: string;
}

export interface PreviewPage {
  number: number;
  width: number;
  height: number;
  text: string;
}

export interface PreviewSheet {
  number: number;
  name: string;
  rows: number;
  columns: number;
  is_cut: boolean;
}

export interface Preview {
  id: string;
  state: 'waiting' | 'making' | 'ready' | 'failed';
  format: string;
  message?: string | null;
  fix?: string | null;
  is_cut: boolean;
  cut_message?: string | null;
  pages?: PreviewPage[] | null;
  page_count?: number | null;
  sheets?: PreviewSheet[] | null;
  image?: { width: number; height: number } | null;
  text_media?: 'text' | 'json' | 'markdown' | 'html' | null;
  progress?: { done: number; of: number } | null;
}

export interface SheetCell {
  /** As the sheet shows it. */
  v: string;
  /** Text, number, date, boolean or error. */
  t: 's' | 'n' | 'd' | 'b' | 'e';
  a?: 'left' | 'center' | 'right';
}

export interface Sheet {
  name: string;
  columns: string[];
  widths: number[];
  rows: (SheetCell | null)[][];
  /** First row, first column, last row, last column. */
  merges: [number, number, number, number][];
  first_row_is_header: boolean;
}

export interface Model {
  id: string;
  name: string;
  base_url: string;
  model: string;
  context_tokens: number;
  connect_timeout_seconds: number;
  silence_timeout_seconds: number;
  is_default: boolean;
  has_api_key: boolean;
  version: number;
  created_at: string;
}

export interface ModelTestStep {
  id: string;
  title: string;
  status: string;
  message: string;
  fix?: string | null;
}

export interface ModelTest {
  is_passed: boolean;
  steps: ModelTestStep[];
  models?: string[] | null;
  latency_ms?: number | null;
}

type Query = Record<string, string | number | boolean | undefined>;

interface Call {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Asks the API, and gives what it answers or throws a `Failure`. */
export async function call<Data>(method: string, path: string, given: Call = {}): Promise<Data> {
  let response: Response;
  try {
    response = await fetch(withQuery(`/api/v1${path}`, given.query), {
      method,
      headers: {
        ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...given.headers,
      },
      ...(given.body === undefined ? {} : { body: JSON.stringify(given.body) }),
      ...(given.signal ? { signal: given.signal } : {}),
    });
  } catch {
    throw unreachable();
  }
  const text = await response.text();
  const body: unknown = response.headers.get('content-type')?.includes('json')
    ? JSON.parse(text)
    : text;
  if (!response.ok) throw failureOf(response.status, body);
  return body as Data;
}

/** An address with what is asked for, where something is. */
export function withQuery(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs).toString()}`;
}
