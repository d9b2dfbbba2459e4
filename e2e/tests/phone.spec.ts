import { type Browser, expect, type Page, test } from '@playwright/test';
import { letCodeRun, main } from '../lib/api.js';
import { box, card, download, isOver, preview, reply, say } from '../lib/chat.js';
import { lookOnPhone, NARROW } from '../lib/look.js';
import { ADMIN, setUp, signIn } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const CODE = `
import pandas as pd
sales = pd.DataFrame({f'a rather long column {n}': range(40) for n in range(12)})
sales.to_csv('a-rather-long-name-of-a-table-for-a-narrow-screen.csv', index=False)
print('x' * 400)
sales
`.trim();

const FILE = 'a-rather-long-name-of-a-table-for-a-narrow-screen.csv';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('phone');
});

test.afterAll(async () => server?.stop());

test('chat, artifacts and knowledge are used on a phone', async ({ page, browser }) => {
  await setUp(page, server.setupLink);
  await letCodeRun(page.request, server.address, await main(page.request, server.address));
  const phone = await onPhone(browser);
  const nothingWrong = watch(phone.context(), server.address);
  await signIn(phone, server.address, ADMIN);
  await lookOnPhone(phone, '140-phone-new');
  await chats(phone);
  await artifacts(phone);
  await knowledge(phone);
  nothingWrong();
  await phone.context().close();
});

async function onPhone(browser: Browser): Promise<Page> {
  const context = await browser.newContext({
    viewport: NARROW,
    hasTouch: true,
    isMobile: true,
    // What moves in is there at once, to be looked at.
    reducedMotion: 'reduce',
  });
  return context.newPage();
}

async function chats(page: Page) {
  // A keyboard does not come up over a page that nobody has touched.
  await expect(box(page)).not.toBeFocused();
  await say(page, CODE);
  await isOver(page);
  await lookOnPhone(page, '141-phone-reply');
  await expect(box(page)).toBeInViewport();
  // What is wider than the screen is moved by itself.
  const output = reply(page).getByRole('region', { name: 'Output' });
  expect(await output.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(true);

  await card(page, FILE).getByRole('button', { name: 'Preview' }).tap();
  const panel = preview(page, FILE);
  await expect(panel.getByRole('cell', { name: 'a rather long column 0' })).toBeVisible({
    timeout: 60_000,
  });
  await lookOnPhone(page, '142-phone-preview');
  await panel.getByRole('button', { name: 'Close the preview' }).tap();
  await expect(panel).toHaveCount(0);
  await download(page, card(page, FILE), FILE);

  await page.getByRole('button', { name: 'Threads' }).tap();
  await expect(page.getByRole('dialog').getByRole('link', { name: /import pandas/ })).toBeVisible();
  await lookOnPhone(page, '143-phone-threads');
  await page.getByRole('dialog').getByRole('link', { name: 'New thread' }).tap();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
}

async function go(page: Page, link: string) {
  await page.getByRole('button', { name: 'Open navigation' }).tap();
  await page.getByRole('navigation').getByRole('link', { name: link, exact: true }).tap();
  await expect(page.getByRole('heading', { level: 1, name: link })).toBeVisible();
}

async function artifacts(page: Page) {
  await go(page, 'Artifacts');
  const row = page.getByRole('row', { name: FILE });
  await expect(row).toBeVisible();
  await lookOnPhone(page, '144-phone-artifacts');
  await row.getByRole('button', { name: 'Preview' }).tap();
  await expect(
    preview(page, FILE).getByRole('cell', { name: 'a rather long column 0' }),
  ).toBeVisible();
  await preview(page, FILE).getByRole('button', { name: 'Close the preview' }).tap();
}

async function knowledge(page: Page) {
  await go(page, 'Knowledge');
  const prices = { name: 'prices.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') };
  await page.locator('input[type=file]').setInputFiles([prices]);
  const row = page.getByRole('row', { name: 'prices.csv' });
  await expect(row).toBeVisible();
  await lookOnPhone(page, '145-phone-knowledge');
  await row.getByRole('button', { name: 'Preview' }).tap();
  await expect(preview(page, 'prices.csv').getByRole('cell', { name: '2' })).toBeVisible({
    timeout: 60_000,
  });
  await lookOnPhone(page, '146-phone-knowledge-preview');
  await preview(page, 'prices.csv').getByRole('button', { name: 'Close the preview' }).tap();
  await row.getByRole('button', { name: 'Delete' }).tap();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete prices.csv' }).tap();
  await expect(row).toHaveCount(0);
}
