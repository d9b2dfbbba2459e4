/**
 * What happens in a thread, as the server streams it. The document of the API has no types for
 * what a stream carries: these follow `crates/protocol/src/thread.rs` and `event.rs`.
 */
export interface ThreadEvent {
  /** Counts up from 1 without gaps within one thread. */
  seq: number;
  at: string;
  type: string;
  data: unknown;
}

export interface Author {
  user?: string;
  name: string;
}

export type MessageKind = 'text' | 'code';

export interface SentFile {
  attachment: string;
  name: string;
  /** What it was called when it was uploaded, where its name was taken. */
  uploaded_as?: string;
  bytes: number;
  media_type: string;
}

export type ReplyOutcome = 'done' | 'stopped' | 'failed';

export interface ErrorBody {
  code: string;
  message: string;
  fix?: string | null;
}

/** Bytes that a program wrote: text where they are UTF-8. */
export type ProgramOutput = { text: string } | { base64: string };

/** A value in several forms, by media type. */
export interface Shown {
  data: Record<string, unknown>;
  display_id?: string;
}

/** Events of a thread by their types. */
export interface ThreadEventData {
  message_sent: {
    message: string;
    author: Author;
    kind: MessageKind;
    text: string;
    attachments?: SentFile[];
  };
  reply_started: { reply: string; reply_to: string };
  text: { reply: string; text: string };
  handed_over: { reply: string; task: string };
  plan: { reply: string; text: string };
  step_started: { reply: string; step: number; code: string };
  step_event: { reply: string; step: number; event: { type: string; data: unknown } };
  step_ended: {
    reply: string;
    step: number;
    execution?: string;
    is_success: boolean;
    summary: string;
    fix?: string;
    code?: string;
    duration_ms: number;
  };
  file_saved: {
    reply?: string;
    step?: number;
    artifact: string;
    name: string;
    version: number;
    bytes: number;
    media_type: string;
    restored_version?: number;
  };
  notice: { reply?: string; code: string; text: string; fix?: string };
  reply_ended: {
    reply: string;
    outcome: ReplyOutcome;
    error?: ErrorBody;
    steps: number;
    duration_ms: number;
  };
  thread_changed: { title: string; is_shared: boolean };
}

/** Events of an execution by their types; only those that are shown. */
export interface StepEventData {
  stdout: ProgramOutput;
  stderr: ProgramOutput;
  late_output: { output: ProgramOutput; dropped_bytes: number };
  display: Shown;
  update_display: Shown;
  clear_output: { wait: boolean };
  result: Shown & { execution_count: number };
  error: { name: string; value: string; traceback: string[] };
  output_dropped: { dropped_bytes: number; limit_bytes: number };
  kernel_replaced: { reason: string };
  left_out: { name: string; message: string };
  more_left_out: { files: number };
  not_collected: { message: string };
  failed: ErrorBody;
}

type Tagged<Data> = { [Type in keyof Data]: { type: Type; data: Data[Type] } }[keyof Data];

/** An event of which the type says what its data is; those of a newer server are neither. */
export const asKnown = (event: ThreadEvent) => event as Tagged<ThreadEventData> & ThreadEvent;
export const asKnownStep = (event: { type: string; data: unknown }) =>
  event as Tagged<StepEventData>;
