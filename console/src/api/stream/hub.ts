import { type Hear, Line, type World } from './line';

interface Watch {
  key: string;
  hear: Hear;
  until: number;
}

/** How long a watch holds that is not renewed: pages that are hidden or gone renew none. */
const HOLDS_MS = 60_000;

/**
 * The streams of a browser: one for each thread that some page shows, however many pages show it.
 * Browsers open few connections to one server, so what nobody looks at has none.
 */
export class Hub {
  #lines = new Map<string, Line>();
  #watches = new Map<string, Watch>();

  constructor(
    readonly world: World,
    readonly now: () => number = () => Date.now(),
  ) {}

  /** Begins to watch, or goes on: `after` is the number of the last event that is there already. */
  watch(id: string, wanted: { user: string; thread: string; after: number }, hear: Hear) {
    const until = this.now() + HOLDS_MS;
    const present = this.#watches.get(id);
    if (present) {
      present.until = until;
      return;
    }
    // What one person was told is not told to the next one at the same browser.
    const key = `${wanted.user} ${wanted.thread}`;
    let line = this.#lines.get(key);
    // One that has ended says so for ever, and what it ended for may be over.
    if (!line || line.isOver) {
      line = new Line(wanted.thread, wanted.after, this.world);
      this.#lines.set(key, line);
    }
    this.#watches.set(id, { key, hear, until });
    line.join(hear, wanted.after);
  }

  leave(id: string) {
    const watch = this.#watches.get(id);
    if (!watch) return;
    this.#watches.delete(id);
    const line = this.#lines.get(watch.key);
    line?.leave(watch.hear);
    if (line?.isUnheard) {
      line.close();
      this.#lines.delete(watch.key);
    }
  }

  /** Ends the watches that nobody has renewed. */
  sweep() {
    for (const [id, { until }] of this.#watches) if (until <= this.now()) this.leave(id);
  }

  hurry() {
    for (const line of this.#lines.values()) line.hurry();
  }
}
