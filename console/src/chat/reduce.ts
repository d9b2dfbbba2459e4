import { asKnown, asKnownStep, type Shown, type ThreadEvent } from '../api/thread-events';
import { moreOutput, noOutput, updated } from './output';
import type { Item, Notice, Part, Reply, Run, SavedFile, Step, ThreadState } from './view';

/**
 * What is shown after more events have come. They may come twice and in any order: one that is
 * there already changes nothing, and one before which another is missing waits for it.
 */
export function reduce(state: ThreadState, events: readonly ThreadEvent[]): ThreadState {
  const waiting = new Map<number, ThreadEvent>();
  for (const event of [...state.early, ...events]) {
    if (event.seq > state.seq) waiting.set(event.seq, event);
  }
  if (waiting.size === 0) return state;
  let next = state;
  for (;;) {
    const event = waiting.get(next.seq + 1);
    if (event === undefined) break;
    waiting.delete(event.seq);
    next = { ...apply(next, event), seq: event.seq };
  }
  return { ...next, early: [...waiting.values()].toSorted((a, b) => a.seq - b.seq) };
}

function apply(state: ThreadState, event: ThreadEvent): ThreadState {
  const known = asKnown(event);
  switch (known.type) {
    case 'message_sent': {
      const { message: id, author, kind: code, text, attachments: files = [] } = known.data;
      return withItem(state, { kind: 'message', id, author, code, text, files, at: event.at });
    }
    case 'reply_started': {
      const { reply: id, reply_to: replyTo } = known.data;
      const reply = { id, replyTo, startedAt: event.at, parts: [], files: [], end: null };
      const replies = { ...state.replies, [id]: reply };
      return withItem({ ...state, replies }, { kind: 'reply', id });
    }
    case 'text':
      return inReply(state, known.data.reply, (reply) => withText(reply, known.data.text));
    case 'handed_over':
      return inRun(state, known.data.reply, (run) => ({
        ...run,
        tasks: [...run.tasks, known.data.task],
      }));
    case 'plan':
      return inRun(state, known.data.reply, (run) => withPlan(run, known.data.text));
    case 'step_started': {
      const { reply, step: number, code } = known.data;
      const step = {
        number,
        code,
        startedAt: event.at,
        output: noOutput,
        files: [],
        end: null,
      };
      return inRun(state, reply, (run) => ({
        ...run,
        lines: [...run.lines, { kind: 'step', step }],
      }));
    }
    case 'step_event': {
      const inner = asKnownStep(known.data.event);
      if (inner.type === 'update_display') return withUpdate(state, inner.data);
      const { reply, step } = known.data;
      return inStep(state, reply, step, (one) => ({
        ...one,
        output: moreOutput(one.output, inner),
      }));
    }
    case 'step_ended': {
      const { reply, step, is_success: isSuccess, summary, fix, code, duration_ms } = known.data;
      const durationMs = duration_ms;
      const end = { isSuccess, summary, fix: fix ?? null, code: code ?? null, durationMs };
      return inStep(state, reply, step, (one) => ({ ...one, end }));
    }
    case 'file_saved':
      return withFile(state, event.seq, known.data.reply, known.data.step, {
        artifact: known.data.artifact,
        name: known.data.name,
        version: known.data.version,
        bytes: known.data.bytes,
        mediaType: known.data.media_type,
        restoredVersion: known.data.restored_version ?? null,
      });
    case 'notice': {
      const { reply, code, text, fix } = known.data;
      return withNotice(state, event.seq, reply, { code, text, fix: fix ?? null });
    }
    case 'reply_ended': {
      const { reply, outcome, error, steps, duration_ms } = known.data;
      const end = { outcome, error: error ?? null, steps, durationMs: duration_ms };
      return inReply(state, reply, (one) => ({ ...withoutOpenSteps(one, event.at), end }));
    }
    case 'thread_changed': {
      const { title, is_shared: isShared } = known.data;
      return { ...state, changed: { title, isShared } };
    }
    default:
      // A newer server may tell what this console does not know.
      return state;
  }
}

const withItem = (state: ThreadState, item: Item): ThreadState => ({
  ...state,
  items: [...state.items, item],
});

function inReply(state: ThreadState, id: string, change: (reply: Reply) => Reply): ThreadState {
  const reply = state.replies[id];
  if (reply === undefined) return state;
  return { ...state, replies: { ...state.replies, [id]: change(reply) } };
}

function withText(reply: Reply, text: string): Reply {
  const last = reply.parts.at(-1);
  const part: Part = { kind: 'text', text: last?.kind === 'text' ? last.text + text : text };
  const before = last?.kind === 'text' ? reply.parts.slice(0, -1) : reply.parts;
  return { ...reply, parts: [...before, part] };
}

/** Changes the run that is going on, or begins one after words of the reply. */
const inRun = (state: ThreadState, id: string, change: (run: Run) => Run): ThreadState =>
  inReply(state, id, (reply) => {
    const last = reply.parts.at(-1);
    const isOn = last?.kind === 'run';
    const run = change(isOn ? last.run : { tasks: [], plan: null, lines: [] });
    const before = isOn ? reply.parts.slice(0, -1) : reply.parts;
    return { ...reply, parts: [...before, { kind: 'run', run }] };
  });

const withPlan = (run: Run, text: string): Run => ({
  ...run,
  plan: text,
  lines: [...run.lines, { kind: 'plan', text }],
});

/** Changes a step wherever it stands in the reply. */
const inStep = (
  state: ThreadState,
  id: string,
  number: number,
  change: (step: Step) => Step,
): ThreadState =>
  inReply(state, id, (reply) => ({
    ...reply,
    parts: reply.parts.map((part) => {
      if (part.kind !== 'run') return part;
      const isIn = part.run.lines.some(
        (line) => line.kind === 'step' && line.step.number === number,
      );
      if (!isIn) return part;
      const lines = part.run.lines.map((line) =>
        line.kind === 'step' && line.step.number === number
          ? { ...line, step: change(line.step) }
          : line,
      );
      return { ...part, run: { ...part.run, lines } };
    }),
  }));

/** A reply that has ended has no step that still runs, though nobody has told the end of one. */
function withoutOpenSteps(reply: Reply, at: string): Reply {
  const parts = mapped(reply.parts, (part) => {
    if (part.kind !== 'run') return part;
    const lines = mapped(part.run.lines, (line) => {
      if (line.kind !== 'step' || line.step.end !== null) return line;
      const durationMs = Math.max(0, Date.parse(at) - Date.parse(line.step.startedAt));
      const end = { isSuccess: false, summary: 'did not end', fix: null, code: null, durationMs };
      return { ...line, step: { ...line.step, end } };
    });
    return lines === part.run.lines ? part : { ...part, run: { ...part.run, lines } };
  });
  return parts === reply.parts ? reply : { ...reply, parts };
}

/** A display keeps its name for as long as the kernel lives, so an earlier reply may have it. */
function withUpdate(state: ThreadState, shown: Shown): ThreadState {
  const replies = Object.fromEntries(
    Object.entries(state.replies).map(([id, reply]) => [id, displaysUpdated(reply, shown)]),
  );
  return { ...state, replies };
}

function displaysUpdated(reply: Reply, shown: Shown): Reply {
  const parts = mapped(reply.parts, (part) => {
    if (part.kind !== 'run') return part;
    const lines = mapped(part.run.lines, (line) => {
      if (line.kind !== 'step') return line;
      const output = updated(line.step.output, shown);
      return output === line.step.output ? line : { ...line, step: { ...line.step, output } };
    });
    return lines === part.run.lines ? part : { ...part, run: { ...part.run, lines } };
  });
  return parts === reply.parts ? reply : { ...reply, parts };
}

/** The same list where nothing in it has changed, so that nothing is drawn anew. */
function mapped<One>(list: readonly One[], change: (one: One) => One): readonly One[] {
  const next = list.map(change);
  return next.every((one, index) => one === list[index]) ? list : next;
}

function withFile(
  state: ThreadState,
  seq: number,
  reply: string | undefined,
  step: number | undefined,
  file: SavedFile,
): ThreadState {
  if (reply === undefined) {
    return withItem(state, { kind: 'saved', id: `saved-${seq}`, file });
  }
  const kept = inReply(state, reply, (one) => ({
    ...one,
    files: [...one.files.filter(({ name }) => name !== file.name), file],
  }));
  if (step === undefined) return kept;
  return inStep(kept, reply, step, (one) => ({ ...one, files: [...one.files, file] }));
}

function withNotice(
  state: ThreadState,
  seq: number,
  reply: string | undefined,
  notice: Notice,
): ThreadState {
  if (reply === undefined) return withItem(state, { kind: 'notice', id: `notice-${seq}`, notice });
  // One that comes between steps does not end what they are shown as.
  if (state.replies[reply]?.parts.at(-1)?.kind === 'run') {
    return inRun(state, reply, (run) => ({
      ...run,
      lines: [...run.lines, { kind: 'notice', notice }],
    }));
  }
  return inReply(state, reply, (one) => ({
    ...one,
    parts: [...one.parts, { kind: 'notice', notice }],
  }));
}
