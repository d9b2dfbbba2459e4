import { asKnownStep, type ProgramOutput, type Shown } from '../api/thread-events';
import { bytes } from '../format/bytes';
import { fileName } from '../format/fileName';
import { decodeMore, fromBase64 } from './bytes';
import type { Block, Display, Output } from './view';

/** Most characters of one block that are kept; the server keeps less of a whole step. */
const MOST_LETTERS = 200_000;

/** Most blocks of one step that are kept. */
const MOST_BLOCKS = 500;

/** Most base64 letters of a picture that is shown. */
const MOST_PICTURE = 16 * 1024 * 1024;

export const noOutput: Output = { blocks: [], isStale: false };

/** What is shown after something more has happened while code ran. */
export function moreOutput(output: Output, event: { type: string; data: unknown }): Output {
  const known = asKnownStep(event);
  switch (known.type) {
    case 'stdout':
    case 'stderr':
      return written(output, known.type, known.data);
    case 'late_output': {
      const { text } = textOf('', known.data.output);
      const cut =
        known.data.dropped_bytes > 0 ? ` (the first ${bytes(known.data.dropped_bytes)} cut)` : '';
      return shows(output, remark(`Output of earlier code came late${cut}:\n${text}`));
    }
    case 'display':
      return shows(output, display(known.data, false));
    case 'result':
      return shows(output, display(known.data, true));
    case 'error': {
      const { name, value, traceback } = known.data;
      return shows(output, { kind: 'error', name, value, traceback: traceback.join('\n') });
    }
    case 'clear_output':
      return known.data.wait ? { ...output, isStale: true } : noOutput;
    case 'output_dropped': {
      const { dropped_bytes, limit_bytes } = known.data;
      const text = `${bytes(dropped_bytes)} of output were dropped: the limit is ${bytes(limit_bytes)}.`;
      return shows(output, remark(text));
    }
    case 'kernel_replaced':
      return shows(output, remark(`Variables are gone: ${known.data.reason}.`));
    case 'left_out':
      return shows(
        output,
        remark(`${fileName(known.data.name)} stayed in the sandbox: ${known.data.message}.`),
      );
    case 'more_left_out':
      return shows(output, remark(`${known.data.files} more files stayed in the sandbox.`));
    case 'not_collected':
    case 'failed':
      return shows(output, remark(known.data.message));
    default:
      return output;
  }
}

/** The blocks after a display that is there already was changed; the same where none is. */
export function updated(output: Output, shown: Shown): Output {
  const id = shown.display_id;
  const isThere = (block: Block) => block.kind === 'display' && block.displayId === id;
  if (id === undefined || !output.blocks.some(isThere)) return output;
  const blocks = output.blocks.map((block) =>
    block.kind === 'display' && isThere(block) ? display(shown, block.isResult) : block,
  );
  return { ...output, blocks };
}

const remark = (text: string): Block => ({ kind: 'remark', text });

function shows(output: Output, block: Block): Output {
  const blocks = output.isStale ? [] : output.blocks;
  if (blocks.length < MOST_BLOCKS) return { blocks: [...blocks, block], isStale: false };
  return { blocks: [...blocks.slice(1 - MOST_BLOCKS), block], isStale: false };
}

function written(output: Output, stream: 'stdout' | 'stderr', more: ProgramOutput): Output {
  const blocks = output.isStale ? [] : output.blocks;
  const last = blocks.at(-1);
  const isSame = last?.kind === 'stream' && last.stream === stream;
  const { text, rest } = textOf(isSame ? last.rest : '', more);
  const whole = isSame ? last.raw + text : text;
  const isLong = whole.length > MOST_LETTERS;
  const block: Block = {
    kind: 'stream',
    stream,
    raw: isLong ? whole.slice(-MOST_LETTERS) : whole,
    cut: isLong || (isSame && last.cut),
    rest,
  };
  if (!isSame) return shows(output, block);
  return { blocks: [...blocks.slice(0, -1), block], isStale: false };
}

function textOf(rest: string, more: ProgramOutput): { text: string; rest: string } {
  if ('text' in more) return { text: (rest === '' ? '' : '\ufffd') + more.text, rest: '' };
  return decodeMore(rest, fromBase64(more.base64) ?? new Uint8Array());
}

const display = (shown: Shown, isResult: boolean): Block => ({
  kind: 'display',
  displayId: shown.display_id ?? null,
  shown: formOf(shown.data),
  isResult,
});

/** Text forms come as one string or as lines. */
function textForm(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.filter((line) => typeof line === 'string').join('');
  return value === undefined ? '' : JSON.stringify(value, null, 2);
}

/** The form of a value that can be shown without harm: HTML and SVG never are. */
function formOf(data: Record<string, unknown>): Display {
  const text = textForm(data['text/plain']);
  for (const mediaType of ['image/png', 'image/jpeg'] as const) {
    const base64 = data[mediaType];
    if (typeof base64 === 'string' && base64.length <= MOST_PICTURE) {
      return { form: 'image', mediaType, base64, text };
    }
  }
  const markdown = data['text/markdown'];
  if (markdown !== undefined) return { form: 'markdown', text: textForm(markdown) };
  const json = data['application/json'];
  if (text === '' && json !== undefined) {
    return { form: 'text', text: JSON.stringify(json, null, 2), hasHtml: false };
  }
  return { form: 'text', text, hasHtml: data['text/html'] !== undefined };
}
