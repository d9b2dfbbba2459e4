import { expect, type Page, test } from '@playwright/test';
import { body, main } from '../lib/api.js';
import { look, lookAtOverlay } from '../lib/look.js';
import { choose, confirm, go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

/** How many threads the list shows at first. */
const ROWS = 50;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('threads');
});

test.afterAll(async () => server?.stop());

test('threads are found by their titles, and gone when they are deleted', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  const workspace = await main(page.request, server.address);
  await make(page, workspace, 'Budget of the quarter');
  for (let number = 1; number <= ROWS; number += 1) {
    await make(page, workspace, `Notes ${number}`);
  }
  await go(page, 'Chat');
  const list = page.getByRole('complementary', { name: 'Threads' });
  const budget = list.getByRole('link', { name: 'Budget of the quarter' });
  await expect(list.getByRole('link', { name: 'Notes 50' })).toBeVisible();
  await expect(budget).toHaveCount(0);
  await list.getByRole('button', { name: 'Show older threads' }).click();
  await expect(budget).toBeVisible();

  const find = list.getByLabel('Find a thread');
  await find.fill('QUARTER');
  await expect(list.getByRole('link', { name: /^Notes/ })).toHaveCount(0);
  await expect(budget).toBeVisible();
  await expect(page).toHaveURL(/q=QUARTER/);
  await page.reload();
  await expect(find).toHaveValue('QUARTER');
  await expect(list.getByRole('link', { name: /^Notes/ })).toHaveCount(0);
  await look(page, '130-thread-found');
  // What was found is opened, and what it was found by stays.
  await budget.click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Budget of the quarter');
  await expect(find).toHaveValue('QUARTER');
  await find.fill('no such title');
  await expect(list.getByText('No thread is called “no such title”.')).toBeVisible();
  await find.fill('');
  await expect(list.getByRole('link', { name: 'Notes 50' })).toBeVisible();

  const address = page.url();
  await choose(page, 'Budget of the quarter', 'Delete');
  await expect(page.getByRole('dialog')).toContainText('This cannot be taken back.');
  await lookAtOverlay(page, '131-delete-thread');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Budget of the quarter');
  await choose(page, 'Budget of the quarter', 'Delete');
  await confirm(page, 'Delete this thread');
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  await find.fill('quarter');
  await expect(list.getByText('No thread is called “quarter”.')).toBeVisible();
  await page.goto(address);
  await expect(page.getByText('There is no such thread')).toBeVisible();
  nothingWrong();
});

async function make(page: Page, workspace_id: string, title: string) {
  const data = { workspace_id, title };
  await body(await page.request.post(`${server.address}/api/v1/threads`, { data }), 201);
}
