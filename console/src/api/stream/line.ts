import type { ThreadEvent } from '../thread-events';
import { Refused } from './open';

/**
 * How the stream of a thread is: on its way, there, replaced by asking again and again where the
 * server has no more of them, lost and tried again, or over because there is no such thread for
 * this person or nobody is signed in.
 */
export type Link = 'connecting' | 'live' | 'asking' | 'lost' | 'gone' | 'signed_out';

export interface News {
  events: readonly ThreadEvent[];
  link: Link;
}

export type Hear = (news: News) => void;

/** What a line needs of the world. */
export interface World {
  open: (thread: string, after: number, signal: AbortSignal) => AsyncIterable<ThreadEvent[]>;
  /** What is stored after a number. */
  ask: (thread: string, after: number, signal: AbortSignal) => Promise<ThreadEvent[]>;
  /** Resolves after so many milliseconds, or when the signal comes. */
  later: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The server shows every 15 s that it is there. */
const SILENCE_MS = 40_000;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10_000;

/** How often is asked where the server has no stream to give. */
const ASK_EVERY_MS = 3000;

/** The stream of one thread, for whoever listens. It begins anew where it was cut. */
export class Line {
  #events: ThreadEvent[] = [];
  #link: Link = 'connecting';
  #listeners = new Set<Hear>();
  #seq: number;
  #start: number;
  #connection = new AbortController();
  #pause = new AbortController();
  /** Aborted when nobody listens any more. */
  readonly #whole = new AbortController();

  constructor(
    readonly thread: string,
    after: number,
    readonly world: World,
  ) {
    this.#seq = after;
    this.#start = after;
    void this.#run();
  }

  /** Whether it has told its end, and asks no more. */
  get isOver(): boolean {
    return this.#link === 'gone' || this.#link === 'signed_out';
  }

  get isUnheard(): boolean {
    return this.#listeners.size === 0;
  }

  /** Whoever listens first hears what has come after the number that it has. */
  join(hear: Hear, after: number) {
    this.#listeners.add(hear);
    if (after < this.#start) {
      // The others take no harm from hearing it again.
      this.#start = after;
      this.#seq = after;
      this.#events = [];
      this.#connection.abort();
      this.hurry();
    } else {
      hear({ events: this.#events.filter(({ seq }) => seq > after), link: this.#link });
    }
  }

  leave(hear: Hear) {
    this.#listeners.delete(hear);
  }

  /** Tries again at once where the connection is lost. */
  hurry() {
    this.#pause.abort();
  }

  close() {
    this.#whole.abort();
    this.#connection.abort();
    this.#pause.abort();
  }

  async #run() {
    let delay = FIRST_DELAY_MS;
    while (!this.#whole.signal.aborted) {
      this.#connection = new AbortController();
      this.#pause = new AbortController();
      const { signal } = this.#connection;
      try {
        await this.#read(signal, () => (delay = FIRST_DELAY_MS));
      } catch (error) {
        const status = error instanceof Refused ? error.status : 0;
        const end = endOf(status);
        if (end !== null) {
          this.#tell([], end);
          return;
        }
        if (status === 429 && (await this.#ask(signal))) {
          delay = FIRST_DELAY_MS;
          await this.world.later(ASK_EVERY_MS, this.#pause.signal);
          continue;
        }
      }
      // A new beginning that was asked for is no loss, nor is the end.
      if (signal.aborted) continue;
      this.#connection.abort();
      this.#tell([], 'lost');
      await this.world.later(delay, this.#pause.signal);
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }

  /** Reads until the stream is cut, silent for too long, or not in order. */
  async #read(signal: AbortSignal, onLife: () => void) {
    const parts = this.world.open(this.thread, this.#seq, signal)[Symbol.asyncIterator]();
    for (;;) {
      const silence = new AbortController();
      const part = await Promise.race([
        parts.next(),
        this.world.later(SILENCE_MS, silence.signal).then(() => null),
      ]);
      silence.abort();
      if (part === null || part.done === true || signal.aborted) return;
      onLife();
      if (!this.#take(part.value, 'live')) return;
    }
  }

  /** Asks for what is new until nothing more comes. Says whether there were answers. */
  async #ask(signal: AbortSignal): Promise<boolean> {
    try {
      for (;;) {
        const before = this.#seq;
        const events = await this.world.ask(this.thread, before, signal);
        if (signal.aborted || !this.#take(events, 'asking')) return false;
        // An answer has no more than fits into a page.
        if (this.#seq === before) return true;
      }
    } catch {
      // The next stream that is asked for says what is the matter.
      return false;
    }
  }

  /** Tells what is new. Says whether it followed the last that was told. */
  #take(told: readonly ThreadEvent[], link: Link): boolean {
    const events = told.filter(({ seq }) => seq > this.#seq);
    if (events.some(({ seq }, index) => seq !== this.#seq + 1 + index)) return false;
    this.#seq += events.length;
    this.#events.push(...events);
    if (events.length > 0 || this.#link !== link) this.#tell(events, link);
    return true;
  }

  #tell(events: readonly ThreadEvent[], link: Link) {
    this.#link = link;
    for (const hear of this.#listeners) hear({ events, link });
  }
}

/** Whether to ask again would give the same. */
function endOf(status: number): Link | null {
  if (status === 401) return 'signed_out';
  return status === 403 || status === 404 ? 'gone' : null;
}
