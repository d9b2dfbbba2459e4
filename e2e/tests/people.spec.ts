import { type Browser, expect, type Page, test } from '@playwright/test';
import { look, lookAtOverlay } from '../lib/look.js';
import { choose, clickLink, confirm, go, makeUser, setUp, signIn, VIEWER } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const NEW_PASSWORD = 'battery horse staple';

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
  await choose(page, 'Vera', 'Change role');
  await page.getByRole('radio', { name: 'editor' }).check();
  await confirm(page, 'Change role');
  const role = page.getByRole('row', { name: 'vera@example.com' });
  await expect(role).toContainText('editor');
  await page.reload();
  await expect(role).toContainText('editor');
  await page.getByLabel('Filter members').fill('vera');
  await expect(page).toHaveURL(/q=vera/);
  await expect(page.getByRole('cell', { name: 'ada@example.com' })).toHaveCount(0);

  const other = await browser.newContext();
  const vera = await other.newPage();
  await signIn(vera, server.address, VIEWER);
  await makeAndRevokeKey(vera);
  await endOtherSessions(vera, browser);

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

async function makeAndRevokeKey(page: Page) {
  await go(page, 'Your account');
  await page.getByLabel('Name of a new key').fill('script');
  await page.getByRole('button', { name: 'Make API key' }).click();
  await expect(page.getByTestId('secret')).toBeVisible();
  await choose(page, 'script', 'Revoke script');
  await confirm(page, 'Revoke script');
  await expect(page.getByRole('cell', { name: 'script', exact: true })).toHaveCount(0);
}

/** Sessions at another browser end, by themselves and with the password; this one stays. */
async function endOtherSessions(page: Page, browser: Browser) {
  const elsewhere = await browser.newContext();
  const second = await elsewhere.newPage();
  const isSignedOut = async () => {
    await clickLink(second, 'Members');
    await expect(second.getByRole('heading', { name: 'Sign in to Glovebox' })).toBeVisible();
  };
  await signIn(second, server.address, VIEWER);
  await page.reload();
  await look(page, '52-two-sessions');
  const end = page.getByRole('button', { name: 'End session' });
  await end.click();
  await expect(end).toHaveCount(0);
  await isSignedOut();

  await signIn(second, server.address, VIEWER);
  await page.getByLabel('Present password').fill('a wrong password');
  await page.getByLabel('New password').fill(NEW_PASSWORD);
  await page.getByRole('button', { name: 'Change password' }).click();
  await expect(page.getByText('wrong_password')).toBeVisible();
  await page.getByLabel('Present password').fill(VIEWER.password);
  await page.getByLabel('New password').fill('too short');
  await page.getByRole('button', { name: 'Change password' }).click();
  await expect(page.getByRole('alert')).toContainText('12');
  await page.getByLabel('New password').fill(NEW_PASSWORD);
  await page.getByRole('button', { name: 'Change password' }).click();
  await expect(page.getByText('The password is changed.')).toBeVisible();
  await isSignedOut();
  await second.getByLabel('E-mail').fill(VIEWER.email);
  await second.getByLabel('Password', { exact: true }).fill(VIEWER.password);
  await second.getByRole('button', { name: 'Sign in' }).click();
  await expect(second.getByText('wrong_credentials')).toBeVisible();
  await signIn(second, server.address, { ...VIEWER, password: NEW_PASSWORD });
  await elsewhere.close();
}
