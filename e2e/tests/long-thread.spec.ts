import { type APIRequestContext, expect, type Page, test } from '@playwright/test';
import { body, main } from '../lib/api.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

/** More exchanges than a page has events. */
const EXCHANGES = 120;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('long-thread');
});

test.afterAll(async () => server?.stop());

test('a long thread opens at its end, and shows what was before to whoever asks', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  const workspace = await main(page.request, server.address);
  const data = { workspace_id: workspace, title: 'A long talk' };
  const { id } = await body<{ id: string }>(
    await page.request.post(`${server.address}/api/v1/threads`, { data }),
    201,
  );
  // There is no model and code may not run: each is answered with that, at once.
  for (let number = 1; number <= EXCHANGES; number += 1) {
    await exchange(page.request, id, `Question ${number}.`);
  }
  await go(page, 'Chat');
  await page.getByRole('link', { name: 'A long talk' }).click();
  await expect(said(page, EXCHANGES)).toBeInViewport();
  await expect(said(page, 1)).toHaveCount(0);

  const earlier = page.getByRole('button', { name: 'Earlier messages' });
  // What is read stays where it is while something comes above it.
  await earlier.scrollIntoViewIfNeeded();
  const top = page.getByText(/^Question \d+\.$/).first();
  const text = await top.innerText();
  const before = await page.getByText(/^Question \d+\.$/).count();
  await earlier.click();
  await expect.poll(() => page.getByText(/^Question \d+\.$/).count()).toBeGreaterThan(before);
  await expect(page.getByText(text, { exact: true })).toBeInViewport();

  // To the beginning, without a gap and without anything twice.
  while (await earlier.isVisible()) {
    const shown = await page.getByText(/^Question \d+\.$/).count();
    await earlier.click();
    await expect.poll(() => page.getByText(/^Question \d+\.$/).count()).toBeGreaterThan(shown);
  }
  const all = await page.getByText(/^Question \d+\.$/).allInnerTexts();
  const expected = Array.from({ length: EXCHANGES }, (_, at) => `Question ${at + 1}.`);
  expect(all).toEqual(expected);

  // And it goes on live at its end.
  await exchange(page.request, id, 'Question 121.');
  await expect(said(page, 121)).toHaveCount(1);
  nothingWrong();
});

const said = (page: Page, number: number) => page.getByText(`Question ${number}.`, { exact: true });

/** Sends a message and waits until its reply has ended. */
async function exchange(request: APIRequestContext, thread: string, text: string) {
  const at = `${server.address}/api/v1/threads/${thread}`;
  const data = { text, kind: 'text', attachments: [] };
  await body(await request.post(`${at}/messages`, { data }), 202);
  await expect
    .poll(
      async () =>
        (await body<{ running_reply?: string | null }>(await request.get(at), 200)).running_reply ??
        null,
      { intervals: [20] },
    )
    .toBeNull();
}
