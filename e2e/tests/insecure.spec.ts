import { expect, type Page, test } from '@playwright/test';
import { look } from '../lib/look.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('insecure', { GLOVEBOX_INSECURE_HTTP: 'true' });
});

test.afterAll(async () => server?.stop());

test('over plain HTTP a banner stays, and the console works without what browsers hold back', async ({
  page,
  context,
}) => {
  // By another name than that of this machine, as everybody else on the network comes.
  const elsewhere = (address: string) => address.replace('127.0.0.1', 'glovebox.test');
  const nothingWrong = watch(context, elsewhere(server.address));
  await setUp(page, elsewhere(server.setupLink));
  expect(await page.evaluate(() => window.isSecureContext)).toBe(false);
  await isWarned(page);
  await look(page, '61-insecure');

  await page.getByRole('link', { name: 'This machine' }).click();
  const id = page.getByRole('button', { name: 'Copy profile id' });
  const whole = (await id.getAttribute('title')) ?? '';
  await id.click();
  await expect(page.locator('code', { hasText: whole })).toBeVisible();

  await go(page, 'Your account');
  await isWarned(page);
  await page.getByLabel('Name of a new key').fill('script');
  await page.getByRole('button', { name: 'Make API key' }).click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await expect(page.getByText('select it by hand')).toBeVisible();
  await page.reload();
  await isWarned(page);
  nothingWrong();
});

const isWarned = (page: Page) =>
  expect(page.getByText('This connection is not encrypted')).toBeVisible();
