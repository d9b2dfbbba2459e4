import { expect, test } from '@playwright/test';
import { body, main } from '../lib/api.js';
import { lookAtOverlay } from '../lib/look.js';
import { choose, confirm, EDITOR, go, setUp, signIn, takesFocus } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('members');
});

test.afterAll(async () => server?.stop());

test('a role is chosen and then given, and a workspace is never without an owner', async ({
  page,
  context,
  browser,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  const workspace_id = await main(page.request, server.address);
  const data = { ...EDITOR, workspace_id, role: 'editor' };
  await body(await page.request.post(`${server.address}/api/v1/admin/users`, { data }), 201);

  await go(page, 'Members');
  const dialog = page.getByRole('dialog');
  const change = dialog.getByRole('button', { name: 'Change role' });
  const ed = page.getByRole('row', { name: 'ed@example.com' });
  const changes: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'PATCH') changes.push(request.url());
  });
  // Going through the list changes nothing, and leaving it neither.
  await choose(page, 'Ed', 'Change role');
  await expect(change).toBeDisabled();
  await takesFocus(dialog);
  await dialog.getByRole('radio', { name: 'editor' }).focus();
  await page.keyboard.press('ArrowDown');
  await expect(dialog.getByRole('radio', { name: 'admin' })).toBeChecked();
  await page.keyboard.press('ArrowDown');
  await expect(dialog.getByRole('radio', { name: 'owner' })).toBeChecked();
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await expect(ed).toContainText('editor');
  expect(changes).toEqual([]);

  await choose(page, 'Ada', 'Change role');
  await expect(dialog).toContainText('You are the only owner');
  await expect(change).toBeDisabled();
  await lookAtOverlay(page, '110-only-owner');
  await page.keyboard.press('Escape');
  await choose(page, 'Ada', 'Leave this workspace');
  await expect(dialog).toContainText('Make somebody else an owner first.');
  await expect(dialog.getByRole('button', { name: 'Leave Main' })).toBeDisabled();
  await page.keyboard.press('Escape');

  await choose(page, 'Ed', 'Change role');
  await dialog.getByRole('radio', { name: 'owner' }).check();
  await lookAtOverlay(page, '111-change-role');
  // A double click is one.
  await change.dblclick();
  await expect(dialog).toHaveCount(0);
  await expect(ed).toContainText('owner');
  expect(changes).toHaveLength(1);

  await choose(page, 'Ada', 'Change role');
  await dialog.getByRole('radio', { name: 'viewer' }).check();
  await expect(dialog).toContainText('You cannot give them back to yourself');
  await page.keyboard.press('Escape');
  await choose(page, 'Ada', 'Leave this workspace');
  await expect(dialog).toContainText('Leave Main?');
  await expect(dialog).toContainText('You lose access to Main');
  await lookAtOverlay(page, '112-leave');
  await confirm(page, 'Leave Main');
  // A system admin without a workspace begins in Admin.
  await expect(page.getByRole('heading', { level: 1, name: 'Sandbox' })).toBeVisible();
  await expect(page.getByLabel('Switch workspace')).toHaveCount(0);

  const other = await browser.newContext();
  const left = await other.newPage();
  await signIn(left, server.address, EDITOR);
  await go(left, 'Members');
  await expect(left.getByRole('cell', { name: EDITOR.email })).toBeVisible();
  await expect(left.getByRole('cell', { name: 'ada@example.com' })).toHaveCount(0);
  await other.close();
  nothingWrong();
});
