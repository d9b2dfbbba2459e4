import { expect, type Page, test } from '@playwright/test';
import { body, letCodeRun, main } from '../lib/api.js';
import { box, card, isOver, preview, reply, say } from '../lib/chat.js';
import { look, lookAtOverlay } from '../lib/look.js';
import { EDITOR, setUp, signIn, VIEWER, go } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('chat-sharing');
});

test.afterAll(async () => server?.stop());

test('a private thread is nobody else’s, a shared one is read by all', async ({
  page: ada,
  context,
  browser,
}) => {
  const adaSawNothingWrong = watch(context, server.address);
  await setUp(ada, server.setupLink);
  const workspace = await main(ada.request, server.address);
  await letCodeRun(ada.request, server.address, workspace);
  const users = `${server.address}/api/v1/admin/users`;
  for (const [who, role] of [
    [VIEWER, 'viewer'],
    [EDITOR, 'editor'],
  ] as const) {
    const data = { ...who, workspace_id: workspace, role };
    await body(await ada.request.post(users, { data }), 201);
  }
  await go(ada, 'Chat');
  await say(ada, "open('secret.csv', 'w').write('a,b\\n1,2\\n')");
  await isOver(ada);
  await card(ada, 'secret.csv').getByRole('button', { name: 'Preview' }).click();
  await expect(preview(ada, 'secret.csv').getByRole('cell', { name: '2' })).toBeVisible({
    timeout: 60_000,
  });
  const address = ada.url();

  const vera = await (await browser.newContext()).newPage();
  const veraSawNothingWrong = watch(vera.context(), server.address);
  await signIn(vera, server.address, VIEWER);
  await expect(vera.getByText('Viewers read threads that are shared')).toBeVisible();
  await nothingIsThere(vera, await everythingOf(ada, address));
  await vera.goto(address);
  await expect(vera.getByText('There is no such thread')).toBeVisible();
  await look(vera, '100-no-thread');

  await share(ada);
  await go(vera, 'Chat');
  await vera.getByRole('link', { name: /secret\.csv/ }).click();
  await expect(vera.getByText('You can read this thread')).toBeVisible();
  await expect(box(vera)).toHaveCount(0);
  await card(vera, 'secret.csv').getByRole('button', { name: 'Preview' }).click();
  await expect(preview(vera, 'secret.csv').getByRole('cell', { name: '2' })).toBeVisible();
  await expect(vera.getByRole('button', { name: /^Actions for/ })).toHaveCount(0);
  await look(vera, '102-shared-viewer');

  const ed = await (await browser.newContext()).newPage();
  await signIn(ed, server.address, EDITOR);
  await ed.goto(address);
  await expect(reply(ed)).toBeVisible();
  await say(ed, "print('written by', 'Ed')");
  await expect(reply(ada)).toContainText('written by Ed');
  await expect(ada.getByRole('article', { name: 'Message of Ed' })).toBeVisible();
  await isOver(ed);

  await makePrivate(ada);
  for (const other of [vera, ed]) {
    await expect(other.getByText(/not there any more|There is no such thread/)).toBeVisible({
      timeout: 60_000,
    });
    await nothingIsThere(other, await everythingOf(ada, address));
  }
  veraSawNothingWrong();
  adaSawNothingWrong();
});

/** The addresses of all that a thread consists of, as its owner sees them. */
async function everythingOf(page: Page, address: string): Promise<string[]> {
  const api = `${server.address}/api/v1`;
  const thread = /chat\/([0-9a-f-]{36})/.exec(address)?.[1] ?? '';
  const listed = await page.request.get(
    `${api}/artifacts?thread_id=${thread}&workspace_id=${await main(page.request, server.address)}`,
  );
  const { items } = await body<{ items: { id: string }[] }>(listed, 200);
  const [artifact] = items;
  if (!artifact) throw new Error('the thread has no file');
  const made = await page.request.get(`${api}/artifacts/${artifact.id}/preview`);
  const { id } = await body<{ id: string }>(made, 200);
  return [
    `${api}/threads/${thread}`,
    `${api}/threads/${thread}/events?after=0`,
    `${api}/artifacts/${artifact.id}`,
    `${api}/artifacts/${artifact.id}/content`,
    `${api}/artifacts/${artifact.id}/versions`,
    `${api}/artifacts/${artifact.id}/preview`,
    `${api}/previews/${id}/sheets/1`,
  ];
}

async function nothingIsThere(page: Page, addresses: string[]) {
  for (const address of addresses) {
    await body(await page.request.get(address), 404);
  }
}

async function share(page: Page) {
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Share with the workspace' }).click();
  await expect(page.getByRole('dialog')).toContainText('Every member of Main, viewers too');
  await lookAtOverlay(page, '101-share');
  await page.getByRole('dialog').getByRole('button', { name: 'Share with Main' }).click();
  await expect(page.getByText('shared', { exact: true }).first()).toBeVisible();
}

async function makePrivate(page: Page) {
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Make private' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make private' }).click();
  await expect(page.getByText('private', { exact: true })).toBeVisible();
}
