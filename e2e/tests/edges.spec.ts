import { expect, test } from '@playwright/test';
import { body } from '../lib/api.js';
import { look } from '../lib/look.js';
import { ADMIN, clickLink, go, setUp, signIn, turnOn } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('edges');
});

test.afterAll(async () => server?.stop());

test('nothing typed is lost in silence, and a lost session comes back to its page', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await go(page, 'Workspaces');
  await page.getByRole('link', { name: 'Main' }).click();
  const quota = page.getByLabel('New sandboxes per hour');
  await quota.fill('50');

  page.once('dialog', (dialog) => void dialog.dismiss());
  await clickLink(page, 'Users');
  await expect(quota).toHaveValue('50');

  // Somebody else saves in the meantime.
  const id = page.url().split('/').at(-1) ?? '';
  const path = `${server.address}/api/v1/admin/workspaces/${id}`;
  await body(await page.request.patch(path, { data: { version: 1, name: 'Main two' } }), 200);
  await expect(page.getByRole('heading', { level: 1, name: 'Main two' })).toBeVisible();
  await expect(quota).toHaveValue('50');
  await page.getByRole('button', { name: 'Save quotas' }).click();
  await expect(page.getByText('changed_meanwhile')).toBeVisible();
  await look(page, '41-conflict');
  await page.getByRole('button', { name: 'Load the present values' }).click();
  await expect(quota).toHaveValue('60');
  await quota.fill('50');
  // The switch beside it is no other change: nothing typed is lost, and it can be saved.
  await turnOn(page, 'Code execution in Main two');
  await expect(quota).toHaveValue('50');
  await page.getByRole('button', { name: 'Save quotas' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  await expect(quota).toHaveValue('50');
  await expect(page.getByRole('switch', { name: 'Code execution in Main two' })).toBeChecked();

  await context.clearCookies();
  await expect(page.getByRole('heading', { name: 'Sign in to Glovebox' })).toBeVisible();
  await page.getByLabel('E-mail').fill(ADMIN.email);
  await page.getByLabel('Password', { exact: true }).fill('a wrong password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('wrong_credentials')).toBeVisible();
  await look(page, '42-wrong-password');
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Main two' })).toBeVisible();
  nothingWrong();
});

test('a part of the console that does not arrive is said, and comes with the next try', async ({
  page,
}) => {
  await signIn(page, server.address, ADMIN);
  const lost = /assets\/AuditPage-/;
  await page.route(lost, (route) => route.abort());
  await clickLink(page, 'Audit logs');
  await expect(page.getByText('A part of the console did not arrive.')).toBeVisible();
  await look(page, '43-not-loaded');
  await page.unroute(lost);
  await page.getByRole('button', { name: 'Load the page again' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Audit logs' })).toBeVisible();
});
