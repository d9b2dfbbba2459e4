import type { Attachment, UploadLimits } from '../api/views';
import { asFailure } from '../api/failure';
import { deleteAttachment } from '../api/files';
import { randomId } from '../api/random';
import { isCancelled, upload, type Upload } from '../api/upload';
import { sentence } from '../format/sentence';
import { refusal } from './limits';

/** A file that is to be sent with the next message. */
export interface Chip {
  key: string;
  name: string;
  bytes: number;
  state: 'uploading' | 'ready' | 'failed';
  /** Bytes that have been sent. */
  sent: number;
  attachment: string | null;
  mediaType: string;
  /** Why it did not go. */
  why: string | null;
  /** Whether it can be sent anew as it is. */
  mayTryAgain: boolean;
}

export interface Draft {
  text: string;
  isCode: boolean;
  chips: readonly Chip[];
}

const none: Draft = { text: '', isCode: false, chips: [] };

const PREFIX = 'draft ';

/**
 * What people have typed and attached and not sent yet, by person and thread. Uploads go on when
 * another thread is looked at; a reload keeps what has arrived.
 */
export class Drafts {
  #drafts = new Map<string, Draft>();
  #uploads = new Map<string, Upload<Attachment>>();
  /** What did not arrive, by chip, with the workspace that it is for. */
  #lost = new Map<string, { file: File; workspace: string }>();
  #listeners = new Set<() => void>();

  subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get(key: string): Draft {
    let draft = this.#drafts.get(key);
    if (draft === undefined) {
      draft = stored(key);
      this.#drafts.set(key, draft);
    }
    return draft;
  }

  set(key: string, change: Partial<Draft>) {
    const draft = { ...this.get(key), ...change };
    this.#drafts.set(key, draft);
    store(key, draft);
    for (const listener of this.#listeners) listener();
  }

  /** Takes out of a draft what was sent; what was typed or attached since then stays. */
  sent(key: string, was: Draft) {
    const { text, chips } = this.get(key);
    const went = new Set(was.chips.flatMap((one) => (one.attachment === null ? [] : one.key)));
    this.set(key, {
      text: text.startsWith(was.text) ? text.slice(was.text.length).trimStart() : text,
      chips: chips.filter((one) => !went.has(one.key)),
    });
  }

  /** Goes on elsewhere with a draft. */
  move(from: string, to: string) {
    const draft = this.get(from);
    this.set(to, draft);
    this.set(from, { ...none, isCode: draft.isCode });
  }

  get isUploading(): boolean {
    return this.#uploads.size > 0;
  }

  attach(key: string, workspace: string, files: readonly File[], limits: UploadLimits) {
    for (const file of files) {
      const present = this.get(key).chips.filter(({ state }) => state !== 'failed');
      const why = refusal(file, present, limits);
      const chip: Chip = {
        key: randomId(),
        name: file.name,
        bytes: file.size,
        state: why === null ? 'uploading' : 'failed',
        sent: 0,
        attachment: null,
        mediaType: file.type,
        why,
        mayTryAgain: false,
      };
      this.set(key, { chips: [...this.get(key).chips, chip] });
      if (why === null) void this.#send(workspace, file, chip.key);
    }
  }

  /** Something that was dropped and is no file. */
  refuse(key: string, name: string, why: string) {
    const chip: Chip = {
      key: randomId(),
      name,
      bytes: 0,
      state: 'failed',
      sent: 0,
      attachment: null,
      mediaType: '',
      why,
      mayTryAgain: false,
    };
    this.set(key, { chips: [...this.get(key).chips, chip] });
  }

  detach(key: string, chip: Chip) {
    this.#uploads.get(chip.key)?.cancel();
    this.#uploads.delete(chip.key);
    this.#lost.delete(chip.key);
    this.set(key, { chips: this.get(key).chips.filter((one) => one.key !== chip.key) });
    // One that stays is swept by the server.
    if (chip.attachment !== null) deleteAttachment(chip.attachment).catch(() => undefined);
  }

  /** Sends a file anew that did not arrive. */
  again(chip: Chip) {
    const lost = this.#lost.get(chip.key);
    if (!lost) return;
    this.#lost.delete(chip.key);
    this.#change(chip.key, { state: 'uploading', sent: 0, why: null, mayTryAgain: false });
    void this.#send(lost.workspace, lost.file, chip.key);
  }

  async #send(workspace: string, file: File, chip: string) {
    const sending = upload<Attachment>('/attachments', workspace, file, (sent) =>
      this.#change(chip, { sent }),
    );
    this.#uploads.set(chip, sending);
    try {
      const { id, media_type } = await sending.done;
      this.#change(chip, { state: 'ready', attachment: id, mediaType: media_type });
    } catch (error) {
      if (isCancelled(error)) return;
      const { message, fix } = asFailure(error);
      this.#lost.set(chip, { file, workspace });
      const why = `${sentence(message)} ${sentence(fix)}`;
      this.#change(chip, { state: 'failed', why, mayTryAgain: true });
    } finally {
      this.#uploads.delete(chip);
    }
  }

  /** Forgets everything: the next person at this browser has nothing of it. */
  forget() {
    for (const sending of this.#uploads.values()) sending.cancel();
    this.#uploads.clear();
    this.#lost.clear();
    this.#drafts.clear();
    try {
      sessionStorage.clear();
    } catch {
      // There is nothing to forget where nothing is kept.
    }
  }

  /** Changes a chip in whichever draft it is now. */
  #change(chip: string, change: Partial<Chip>) {
    for (const [key, { chips }] of this.#drafts) {
      if (!chips.some((one) => one.key === chip)) continue;
      this.set(key, {
        chips: chips.map((one) => (one.key === chip ? { ...one, ...change } : one)),
      });
    }
  }
}

export const drafts = new Drafts();

function stored(key: string): Draft {
  try {
    const text = sessionStorage.getItem(PREFIX + key);
    return text === null ? none : { ...none, ...(JSON.parse(text) as Partial<Draft>) };
  } catch {
    return none;
  }
}

function store(key: string, draft: Draft) {
  const { text, isCode } = draft;
  const chips = draft.chips.filter(({ state }) => state === 'ready');
  try {
    if (text === '' && chips.length === 0) sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, JSON.stringify({ text, isCode, chips }));
  } catch {
    // A browser that keeps nothing still has what is in memory.
  }
}
