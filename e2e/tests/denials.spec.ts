import { expect, type Page, test } from '@playwright/test';
import { activate, askForSandbox, body, type Denied, main } from '../lib/api.js';
import { look } from '../lib/look.js';
import { go, makeUser, setUp, signIn, turnOn, VIEWER } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('denials');
});

test.afterAll(async () => server?.stop());

test('each denial has its name and its fix, in the API and on the page', async ({
  page,
  context,
  browser,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  const workspace = await main(page.request, server.address);

  await go(page, 'Code execution');
  await denied(page, page, workspace, 403, 'deployment');
  await expect(page.getByText('Code execution is switched off.')).toBeVisible();

  await activate(page.request, server.address);
  // That was done beside the console, which asks again two seconds later at the soonest.
  await page.reload();
  await go(page, 'System → Sandbox');
  await turnOn(page, 'Code execution');
  await go(page, 'Code execution');
  await denied(page, page, workspace, 403, 'workspace');
  await expect(page.getByText('Code execution is off in Main.')).toBeVisible();

  await makeUser(page, VIEWER, 'viewer');
  await go(page, 'Workspaces');
  await page.getByRole('link', { name: 'Main' }).click();
  await turnOn(page, 'Code execution in Main');
  await page.getByLabel('Sandboxes at once').fill('1');
  await page.getByRole('button', { name: 'Save quotas' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  await expect(page.getByText('0 of 1 now')).toBeVisible();

  const other = await browser.newContext();
  const viewerSawNothingWrong = watch(other, server.address);
  const viewer = await other.newPage();
  await signIn(viewer, server.address, VIEWER);
  await go(viewer, 'Code execution');
  await denied(viewer, viewer, workspace, 403, 'role');
  await look(viewer, '21-viewer');
  await go(viewer, 'Sandboxes');
  await expect(viewer.getByText('No sandboxes: viewers run no code.')).toBeVisible();
  await go(viewer, 'Your account');
  await expect(viewer.getByText('Viewers make no keys')).toBeVisible();
  await expect(viewer.getByRole('button', { name: 'Make API key' })).toHaveCount(0);
  await look(viewer, '21-viewer-account');
  await viewer.goto(`${server.address}/admin/users`);
  await expect(viewer.getByText('There is no such page')).toBeVisible();
  await look(viewer, '22-not-found');
  viewerSawNothingWrong();
  await other.close();

  await go(page, 'Code execution');
  const made = await body<{ id: string }>(await ask(page, workspace), 201);
  await denied(page, page, workspace, 429, 'quota:max_concurrent');
  await expect(page.getByText('limit reached')).toBeVisible();
  await look(page, '23-denials');
  // A sandbox outlives its server, and would stay until its hard limit.
  await body(await page.request.delete(`${server.address}/api/v1/sandboxes/${made.id}`), 200);
  nothingWrong();
});

const ask = (page: Page, workspace: string) =>
  askForSandbox(page.request, server.address, workspace);

/** Expects a sandbox to be refused to one, and the page of another to say so. */
async function denied(who: Page, shown: Page, workspace: string, status: number, name: string) {
  const refusal = await body<Denied>(await ask(who, workspace), status);
  expect(refusal.code).toBe(name);
  expect(refusal.fix).not.toBe('');
  const row = shown
    .getByRole('region', { name: 'last denials', exact: true })
    .getByRole('row', { name });
  await expect(row.first()).toBeVisible();
  // The page says what to do as the answer did. Of the whole installation there are several causes,
  // and the list keeps the name alone.
  const fix = name === 'deployment' ? 'Admin → System → Sandbox' : refusal.fix.slice(1);
  await expect(row.first().getByRole('cell').nth(2)).toContainText(fix);
}
