import type {
  Author,
  ErrorBody,
  MessageKind,
  ReplyOutcome,
  SentFile,
  ThreadEvent,
} from '../api/thread-events';

/** What is shown of a thread, made of its events. */
export interface ThreadState {
  /** The number of the last event that went into it. */
  seq: number;
  /** Events that came before one that is still missing, by their numbers. */
  early: readonly ThreadEvent[];
  /** What stands below each other, oldest first. */
  items: readonly Item[];
  replies: Readonly<Record<string, Reply>>;
  /** What it is called and who reads it, once an event has said so. */
  changed: { title: string; isShared: boolean } | null;
}

export type Item =
  | ({ kind: 'message' } & Message)
  | { kind: 'reply'; id: string }
  | { kind: 'notice'; id: string; notice: Notice }
  | { kind: 'saved'; id: string; file: SavedFile };

export interface Message {
  id: string;
  author: Author;
  code: MessageKind;
  text: string;
  files: readonly SentFile[];
  at: string;
}

export interface Notice {
  code: string;
  text: string;
  fix: string | null;
}

export interface Reply {
  id: string;
  replyTo: string;
  startedAt: string;
  parts: readonly Part[];
  /** The newest version of each file that came out of it. */
  files: readonly SavedFile[];
  end: ReplyEnd | null;
}

export interface ReplyEnd {
  outcome: ReplyOutcome;
  error: ErrorBody | null;
  steps: number;
  durationMs: number;
}

/** What a reply consists of, in the order in which it came. */
export type Part =
  { kind: 'text'; text: string } | { kind: 'run'; run: Run } | { kind: 'notice'; notice: Notice };

/** Steps that follow each other, with what was said about them. */
export interface Run {
  /** What was handed over, in words. */
  tasks: readonly string[];
  /** What is being done now. */
  plan: string | null;
  /** Plans, steps and notices in their order. */
  lines: readonly RunLine[];
}

export type RunLine =
  | { kind: 'plan'; text: string }
  | { kind: 'step'; step: Step }
  | { kind: 'notice'; notice: Notice };

export interface Step {
  number: number;
  code: string;
  startedAt: string;
  output: Output;
  files: readonly SavedFile[];
  end: StepEnd | null;
}

export interface StepEnd {
  isSuccess: boolean;
  summary: string;
  fix: string | null;
  /** The word of what kept the code from running, where something did. */
  code: string | null;
  durationMs: number;
}

export interface SavedFile {
  artifact: string;
  name: string;
  version: number;
  bytes: number;
  mediaType: string;
  restoredVersion: number | null;
}

/** What code has shown so far. */
export interface Output {
  blocks: readonly Block[];
  /** Whether the next block takes the place of all that are there. */
  isStale: boolean;
}

export type Block =
  | { kind: 'stream'; stream: 'stdout' | 'stderr'; raw: string; cut: boolean; rest: string }
  | { kind: 'display'; displayId: string | null; shown: Display; isResult: boolean }
  | { kind: 'error'; name: string; value: string; traceback: string }
  | { kind: 'remark'; text: string };

/** The form of a value that is shown. */
export type Display =
  | { form: 'image'; mediaType: 'image/png' | 'image/jpeg'; base64: string; text: string }
  | { form: 'markdown'; text: string }
  | { form: 'text'; text: string; hasHtml: boolean };

export const emptyThread: ThreadState = {
  seq: 0,
  early: [],
  items: [],
  replies: {},
  changed: null,
};
