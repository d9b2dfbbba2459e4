import { expect, test } from 'vitest';
import type { ThreadEvent } from '../thread-events';
import { Hub } from './hub';
import type { News, World } from './line';
import { Refused } from './open';
import { SseReader } from './sse';

const event = (seq: number): ThreadEvent => ({ seq, at: '', type: 'text', data: {} });

/** A connection that the test feeds. */
class Connection {
  #waiting: ((part: IteratorResult<ThreadEvent[], undefined>) => void)[] = [];
  #failing: ((error: Error) => void)[] = [];

  constructor(
    readonly thread: string,
    readonly after: number,
    readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.fail(new Error('aborted')));
  }

  [Symbol.asyncIterator]() {
    return {
      next: () =>
        new Promise<IteratorResult<ThreadEvent[], undefined>>((resolve, reject) => {
          this.#waiting.push(resolve);
          this.#failing.push(reject);
        }),
    };
  }

  async give(...seqs: number[]) {
    this.#waiting.shift()?.({ value: seqs.map(event), done: false });
    this.#failing.shift();
    await settled();
  }

  fail(error: Error) {
    this.#failing.shift()?.(error);
    this.#waiting.shift();
  }
}

/** Lets everything run that waits for nothing. */
const settled = async () => {
  for (let round = 0; round < 20; round += 1) await Promise.resolve();
};

function makeWorld() {
  const connections: Connection[] = [];
  const timers: { ms: number; fire: () => void }[] = [];
  const stored: { events: ThreadEvent[] } = { events: [] };
  const world: World = {
    open: (thread, after, signal) => {
      const connection = new Connection(thread, after, signal);
      connections.push(connection);
      return connection;
    },
    ask: (_, after) => Promise.resolve(stored.events.filter(({ seq }) => seq > after)),
    later: (ms, signal) =>
      new Promise((fire) => {
        timers.push({ ms, fire });
        signal.addEventListener('abort', () => fire());
      }),
  };
  const last = () => {
    const connection = connections.at(-1);
    if (!connection) throw new Error('there is no connection');
    return connection;
  };
  return { world, connections, timers, last, stored };
}

function listen() {
  const told: News[] = [];
  return {
    hear: (news: News) => void told.push(news),
    seqs: () => told.flatMap(({ events }) => events.map(({ seq }) => seq)),
    link: () => told.at(-1)?.link,
  };
}

const wanted = (thread: string, after = 0, user = 'u') => ({ user, thread, after });

test('two pages that show a thread share one connection, and the second misses nothing', async () => {
  const { world, connections, last } = makeWorld();
  const hub = new Hub(world);
  const [one, two] = [listen(), listen()];
  hub.watch('1', wanted('t'), one.hear);
  await last().give(1, 2);
  hub.watch('2', wanted('t'), two.hear);
  await last().give(3);
  expect(connections).toHaveLength(1);
  expect(one.seqs()).toEqual([1, 2, 3]);
  expect(two.seqs()).toEqual([1, 2, 3]);
  expect(two.link()).toBe('live');
});

test('another person at the same browser hears from a connection of their own', async () => {
  const { world, connections, last } = makeWorld();
  const hub = new Hub(world);
  const [one, two] = [listen(), listen()];
  hub.watch('1', wanted('t', 0, 'u'), one.hear);
  await last().give(1);
  hub.watch('2', wanted('t', 0, 'v'), two.hear);
  expect(connections).toHaveLength(2);
  expect(two.seqs()).toEqual([]);
});

test('a lost connection is told and goes on where it was', async () => {
  const { world, timers, last, connections } = makeWorld();
  const hub = new Hub(world);
  const page = listen();
  hub.watch('1', wanted('t'), page.hear);
  await last().give(1, 2);
  last().fail(new Error('cut'));
  await settled();
  expect(page.link()).toBe('lost');
  timers.at(-1)?.fire();
  await settled();
  expect(last().after).toBe(2);
  await last().give(3);
  expect(connections).toHaveLength(2);
  expect(page.seqs()).toEqual([1, 2, 3]);
  expect(page.link()).toBe('live');
});

test('silence is a loss, and a heartbeat is none', async () => {
  const { world, timers, last } = makeWorld();
  const hub = new Hub(world);
  const page = listen();
  hub.watch('1', wanted('t'), page.hear);
  await last().give();
  expect(page.link()).toBe('live');
  await last().give();
  expect(page.link()).toBe('live');
  const silence = timers.at(-1);
  expect(silence?.ms).toBe(40_000);
  silence?.fire();
  await settled();
  expect(page.link()).toBe('lost');
});

test('it is tried again more and more seldom, and at once when the network is back', async () => {
  const { world, timers, last, connections } = makeWorld();
  const hub = new Hub(world);
  hub.watch('1', wanted('t'), listen().hear);
  const delays: (number | undefined)[] = [];
  for (let round = 0; round < 6; round += 1) {
    await settled();
    last().fail(new Error('no'));
    await settled();
    delays.push(timers.at(-1)?.ms);
    timers.at(-1)?.fire();
    await settled();
  }
  expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 10_000]);
  last().fail(new Error('no'));
  await settled();
  const before = connections.length;
  hub.hurry();
  await settled();
  expect(connections).toHaveLength(before + 1);
});

test('a thread that is not there for this person is not asked for again', async () => {
  for (const [status, link] of [
    [404, 'gone'],
    [403, 'gone'],
    [401, 'signed_out'],
  ] as const) {
    const { world, last, connections } = makeWorld();
    const hub = new Hub(world);
    const page = listen();
    hub.watch('1', wanted('t'), page.hear);
    await settled();
    last().fail(new Refused(status));
    await settled();
    expect(page.link()).toBe(link);
    hub.hurry();
    await settled();
    expect(connections).toHaveLength(1);
  }
});

test('a thread that is there again is asked for anew, whoever still shows its end', async () => {
  const { world, last, connections } = makeWorld();
  const hub = new Hub(world);
  const [one, two] = [listen(), listen()];
  hub.watch('1', wanted('t'), one.hear);
  await settled();
  last().fail(new Refused(404));
  await settled();
  hub.watch('2', wanted('t', 3), two.hear);
  await last().give(4);
  expect(connections).toHaveLength(2);
  expect(two.link()).toBe('live');
  hub.leave('1');
  await last().give(5);
  expect(two.seqs()).toEqual([4, 5]);
  hub.leave('2');
  expect(last().signal.aborted).toBe(true);
});

test('where the server has no more streams it is asked again and again, until it has one', async () => {
  const { world, timers, last, connections, stored } = makeWorld();
  const hub = new Hub(world);
  const page = listen();
  hub.watch('1', wanted('t', 1), page.hear);
  stored.events = [1, 2, 3].map(event);
  last().fail(new Refused(429));
  await settled();
  expect(page.link()).toBe('asking');
  expect(page.seqs()).toEqual([2, 3]);
  stored.events = [1, 2, 3, 4].map(event);
  const pause = timers.at(-1);
  expect(pause?.ms).toBe(3000);
  pause?.fire();
  await settled();
  last().fail(new Refused(429));
  await settled();
  expect(page.seqs()).toEqual([2, 3, 4]);
  timers.at(-1)?.fire();
  await settled();
  expect(last().after).toBe(4);
  await last().give(5);
  expect(connections).toHaveLength(3);
  expect(page.link()).toBe('live');
  expect(page.seqs()).toEqual([2, 3, 4, 5]);
});

test('more than one answer holds is asked for at once', async () => {
  const { world, timers, last } = makeWorld();
  const asked: number[] = [];
  const answers = [[1, 2], [3], []];
  world.ask = (_, after) => {
    asked.push(after);
    return Promise.resolve((answers.shift() ?? []).map(event));
  };
  const hub = new Hub(world);
  const page = listen();
  hub.watch('1', wanted('t'), page.hear);
  const before = timers.length;
  last().fail(new Refused(429));
  await settled();
  expect(asked).toEqual([0, 2, 3]);
  expect(page.seqs()).toEqual([1, 2, 3]);
  expect(timers.slice(before).filter(({ ms }) => ms === 3000)).toHaveLength(1);
});

test('events that do not follow the last one are asked for again', async () => {
  const { world, timers, last } = makeWorld();
  const hub = new Hub(world);
  const page = listen();
  hub.watch('1', wanted('t'), page.hear);
  await last().give(1);
  await last().give(4);
  timers.at(-1)?.fire();
  await settled();
  expect(last().after).toBe(1);
  await last().give(2, 3, 4);
  expect(page.seqs()).toEqual([1, 2, 3, 4]);
});

test('a page that has less than the others is told all of it', async () => {
  const { world, last } = makeWorld();
  const hub = new Hub(world);
  const [one, two] = [listen(), listen()];
  hub.watch('1', wanted('t', 5), one.hear);
  await last().give(6);
  hub.watch('2', wanted('t', 0), two.hear);
  await settled();
  expect(last().after).toBe(0);
  await last().give(1, 2, 3, 4, 5, 6);
  expect(two.seqs()).toEqual([1, 2, 3, 4, 5, 6]);
});

test('what nobody looks at any more has no connection', async () => {
  let now = 0;
  const { world, last } = makeWorld();
  const hub = new Hub(world, () => now);
  const page = listen();
  hub.watch('1', wanted('t'), page.hear);
  await last().give(1);
  now = 50_000;
  hub.watch('1', wanted('t', 1), page.hear);
  now = 100_000;
  hub.sweep();
  expect(last().signal.aborted).toBe(false);
  now = 110_000;
  hub.sweep();
  expect(last().signal.aborted).toBe(true);
  hub.watch('1', wanted('t', 1), page.hear);
  await settled();
  expect(last().after).toBe(1);
});

test('server-sent events are read in whatever parts they come', () => {
  const text =
    ': beat\n\nid: 1\nevent: text\ndata: {"a":1}\n\ndata: two\r\ndata: lines\r\n\r\ndata:x';
  const whole = new SseReader().feed(text);
  const reader = new SseReader();
  const byLetter = Array.from(text).flatMap((letter) => reader.feed(letter));
  expect(whole).toEqual(['{"a":1}', 'two\nlines']);
  expect(byLetter).toEqual(whole);
});
