import type { Attachment, UploadLimits } from '../api/views';
import { asFailure } from '../api/failure';
import { deleteAttachment } from '../api/files';
import { randomId } from '../api/random';
import { isCancelled, upload, type Upload } from '../api/upload';
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
class Drafts {
  #drafts = new Map<string, Draft>();
  #uploads = new Map<string, Upload<Attachment>>();
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

  /** Forgets a draft that was sent. */
  sent(key: string) {
    const { isCode } = this.get(key);
    this.set(key, { ...none, isCode });
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
      };
      this.set(key, { chips: [...this.get(key).chips, chip] });
      if (why === null) void this.#send(key, workspace, file, chip.key);
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
    };
    this.set(key, { chips: [...this.get(key).chips, chip] });
  }

  detach(key: string, chip: Chip) {
    this.#uploads.get(chip.key)?.cancel();
    this.#uploads.delete(chip.key);
    this.set(key, { chips: this.get(key).chips.filter((one) => one.key !== chip.key) });
    // One that stays is swept by the server.
    if (chip.attachment !== null) deleteAttachment(chip.attachment).catch(() => undefined);
  }

  async #send(key: string, workspace: string, file: File, chip: string) {
    const sending = upload<Attachment>('/attachments', workspace, file, (sent) =>
      this.#change(key, chip, { sent }),
    );
    this.#uploads.set(chip, sending);
    try {
      const { id, media_type } = await sending.done;
      this.#change(key, chip, { state: 'ready', attachment: id, mediaType: media_type });
    } catch (error) {
      if (isCancelled(error)) return;
      const { message, fix } = asFailure(error);
      this.#change(key, chip, { state: 'failed', why: `${message}. ${fix}` });
    } finally {
      this.#uploads.delete(chip);
    }
  }

  /** Forgets everything: the next person at this browser has nothing of it. */
  forget() {
    for (const sending of this.#uploads.values()) sending.cancel();
    this.#uploads.clear();
    this.#drafts.clear();
    try {
      sessionStorage.clear();
    } catch {
      // There is nothing to forget where nothing is kept.
    }
  }

  #change(key: string, chip: string, change: Partial<Chip>) {
    const chips = this.get(key).chips.map((one) =>
      one.key === chip ? { ...one, ...change } : one,
    );
    this.set(key, { chips });
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
