import { expect, type Page, test } from '@playwright/test';
import { lookAtOverlay } from '../lib/look.js';
import { go, makeUser, setUp, signIn, VIEWER } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('people');
});

test.afterAll(async () => server?.stop());

test('people come, change and go, and so do their keys and sessions', async ({
  page,
  context,
  browser,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await makeUser(page, VIEWER, 'viewer');

  await go(page, 'Members');
  const role = page.getByLabel('Role of Vera');
  await role.selectOption('editor');
  await page.reload();
  await expect(role).toHaveValue('editor');
  await page.getByLabel('Filter members').fill('vera');
  await expect(page).toHaveURL(/q=vera/);
  await expect(page.getByRole('cell', { name: 'ada@example.com' })).toHaveCount(0);

  const other = await browser.newContext();
  const vera = await other.newPage();
  await signIn(vera, server.address, VIEWER);
  await makeAndRevokeKey(vera);

  await choose(page, 'Vera', 'Remove Vera');
  await lookAtOverlay(page, '51-remove');
  await confirm(page, 'Remove Vera');
  await expect(page.getByText('Nothing here contains “vera”.')).toBeVisible();
  await page.getByLabel('Filter members').fill('');
  await page.getByLabel('E-mail').fill('nobody@example.com');
  await page.getByRole('button', { name: 'Add member' }).click();
  await expect(page.getByText('no_such_user')).toBeVisible();
  await page.getByLabel('E-mail').fill(VIEWER.email);
  await page.getByRole('button', { name: 'Add member' }).click();
  await expect(page.getByRole('cell', { name: VIEWER.email })).toBeVisible();

  await go(page, 'Users');
  await choose(page, 'Vera', 'Make system admin');
  await confirm(page, 'Make system admin');
  await expect(page.getByRole('row', { name: 'Vera' })).toContainText('system admin');
  await choose(page, 'Vera', 'Disable Vera');
  await confirm(page, 'Disable user');
  await expect(page.getByRole('row', { name: 'Vera' })).toContainText('disabled');
  await vera.goto(`${server.address}/account`);
  await expect(vera.getByRole('heading', { name: 'Sign in to Glovebox' })).toBeVisible();
  await other.close();

  await choose(page, 'Ada', 'Take system admin away');
  await confirm(page, 'Take system admin away');
  await expect(page.getByRole('dialog')).toContainText('last_system_admin');
  nothingWrong();
});

async function choose(page: Page, who: string, action: string) {
  await page.getByRole('button', { name: `Actions for ${who}` }).click();
  await page.getByRole('menuitem', { name: action }).click();
}

const confirm = (page: Page, action: string) =>
  page.getByRole('dialog').getByRole('button', { name: action }).click();

async function makeAndRevokeKey(page: Page) {
  await go(page, 'Your account');
  await page.getByLabel('Name of a new key').fill('script');
  await page.getByRole('button', { name: 'Make API key' }).click();
  await expect(page.getByTestId('secret')).toBeVisible();
  await choose(page, 'script', 'Revoke script');
  await confirm(page, 'Revoke script');
  await expect(page.getByRole('cell', { name: 'script', exact: true })).toHaveCount(0);
}
