import { expect, test, vi } from 'vitest';
import { Failure } from '../api/failure';
import type { Upload } from '../api/upload';
import { Drafts } from './drafts';

interface Arrived {
  id: string;
  media_type: string;
}

/** How each upload that was begun ends, oldest first. */
const sending = vi.hoisted(() => ({
  ends: [] as { arrive: (id: string) => void; fail: (error: Error) => void }[],
}));

vi.mock('../api/upload', () => ({
  isCancelled: () => false,
  upload: (): Upload<Arrived> => {
    const done = new Promise<Arrived>((resolve, reject) => {
      const arrive = (id: string) => resolve({ id, media_type: 'text/csv' });
      sending.ends.push({ arrive, fail: reject });
    });
    return { done, cancel: () => undefined };
  },
}));

// What calls the server belongs to a browser.
vi.mock('../api/files', () => ({ deleteAttachment: () => Promise.resolve() }));

const limits = { max_files: 10, max_file_bytes: 1000, max_total_bytes: 5000 };

/** Attaches a file that arrives under its own name. */
async function attached(drafts: Drafts, key: string, name: string) {
  drafts.attach(key, 'w', [new File(['x'], name)], limits);
  sending.ends.at(-1)?.arrive(name);
  await vi.waitFor(() => expect(drafts.get(key).chips.at(-1)?.state).toBe('ready'));
}

test('what was sent is taken out, and what was typed and attached meanwhile stays', async () => {
  const drafts = new Drafts();
  await attached(drafts, 'a', 'first.csv');
  drafts.set('a', { text: 'Total them', isCode: false });
  const was = drafts.get('a');
  drafts.set('a', { text: 'Total them\nand then' });
  await attached(drafts, 'a', 'second.csv');
  drafts.sent('a', was);
  expect(drafts.get('a').text).toBe('and then');
  expect(drafts.get('a').chips.map(({ name }) => name)).toEqual(['second.csv']);

  drafts.sent('a', drafts.get('a'));
  expect(drafts.get('a')).toMatchObject({ text: '', chips: [] });
});

test('a file that did not go stays to be seen, and can be sent anew', async () => {
  const drafts = new Drafts();
  drafts.attach('a', 'w', [new File(['x'], 'lost.csv')], limits);
  sending.ends.at(-1)?.fail(new Failure(0, 'unreachable', 'no answer', 'try again', null, {}));
  await vi.waitFor(() => expect(drafts.get('a').chips[0]?.state).toBe('failed'));
  const [chip] = drafts.get('a').chips;
  expect(chip).toMatchObject({ why: 'No answer. Try again.', mayTryAgain: true });
  drafts.set('a', { text: 'without it' });
  drafts.sent('a', drafts.get('a'));
  expect(drafts.get('a').chips).toHaveLength(1);

  if (chip) drafts.again(chip);
  expect(drafts.get('a').chips[0]).toMatchObject({ state: 'uploading', why: null });
  sending.ends.at(-1)?.arrive('lost');
  await vi.waitFor(() => expect(drafts.get('a').chips[0]?.attachment).toBe('lost'));
});

test('a file that is too large is refused, and not again', () => {
  const drafts = new Drafts();
  const begun = sending.ends.length;
  drafts.attach('a', 'w', [new File([new Uint8Array(1001)], 'large.csv')], limits);
  expect(drafts.get('a').chips[0]).toMatchObject({ state: 'failed', mayTryAgain: false });
  expect(sending.ends).toHaveLength(begun);
});

test('a draft goes on in the thread that it began, with what is still on its way', async () => {
  const drafts = new Drafts();
  drafts.set('new', { text: 'more', isCode: true });
  drafts.attach('new', 'w', [new File(['x'], 'late.csv')], limits);
  drafts.move('new', 'thread');
  expect(drafts.get('new')).toMatchObject({ text: '', chips: [], isCode: true });
  sending.ends.at(-1)?.arrive('late');
  await vi.waitFor(() => expect(drafts.get('thread').chips[0]?.attachment).toBe('late'));
  expect(drafts.get('thread')).toMatchObject({ text: 'more', isCode: true });
});
