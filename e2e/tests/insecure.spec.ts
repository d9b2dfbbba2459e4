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
  await chats(page);
  nothingWrong();
});

/** What happens in a thread arrives here too. */
async function chats(page: Page) {
  const api = `${server.address.replace('127.0.0.1', 'glovebox.test')}/api/v1`;
  await go(page, 'Chat');
  await isWarned(page);
  const workspace = /\/w\/([0-9a-f-]+)/.exec(page.url())?.[1] ?? '';
  const asked = await page.evaluate(
    async ([api, workspace_id]) => {
      const call = async (path: string, body: unknown) => {
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(`${api}${path}`, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        });
        return (await answer.json()) as { id: string };
      };
      const { id } = await call('/threads', { workspace_id, title: 'By plain HTTP' });
      await call(`/threads/${id}/messages`, { text: 'Hello', kind: 'text' });
      return id;
    },
    [api, workspace],
  );
  await page.getByRole('link', { name: 'By plain HTTP' }).click();
  await expect(page).toHaveURL(new RegExp(asked));
  await expect(page.getByRole('article', { name: 'Message of Ada' })).toContainText('Hello');
  await expect(page.getByRole('article', { name: 'Reply' })).toContainText('Try again');
  await look(page, '62-insecure-chat');
}

const isWarned = (page: Page) =>
  expect(page.getByText('This connection is not encrypted')).toBeVisible();
