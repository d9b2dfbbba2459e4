import { expect, type Page, test } from '@playwright/test';
import { askForSandbox, body, changeWorkspace, type Denied, letCodeRun, main } from '../lib/api.js';
import { addProfile } from '../lib/database.js';
import { look, lookAtOverlay } from '../lib/look.js';
import { confirm, EDITOR, go, setUp, signIn, takesFocus } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('own-sandboxes');
});

test.afterAll(async () => server?.stop());

test('a member sees and ends own sandboxes, until the profile is disabled', async ({
  page: ada,
  context,
  browser,
}) => {
  const adaSawNothingWrong = watch(context, server.address);
  await setUp(ada, server.setupLink);
  const workspace = await main(ada.request, server.address);
  await open(ada, workspace);

  const other = await browser.newContext();
  const edSawNothingWrong = watch(other, server.address);
  const ed = await other.newPage();
  await signIn(ed, server.address, EDITOR);
  await go(ed, 'Sandboxes');
  await expect(ed.getByText('No sandboxes yet.')).toBeVisible();
  await look(ed, '71-no-sandboxes');

  const row = ed.getByRole('region', { name: 'sandboxes', exact: true }).getByRole('row').nth(1);
  await body(await askForSandbox(ed.request, server.address, workspace), 201);
  await expect(row).toContainText('ready');
  // Until it is idle, and until it ends.
  await expect(row).toContainText(/\d:\d\d.*\d:\d\d/);
  await look(ed, '72-own-sandbox');
  await isLost(ed);
  await endByKeyboard(ed);
  await expect(row).toContainText('ended');
  await expect(row).toContainText('whoever it belongs to asked for it');
  await expect(row.getByRole('button', { name: 'End it' })).toHaveCount(0);

  await body(await askForSandbox(ed.request, server.address, workspace), 201);
  await expect(row).toContainText('ready');
  await go(ada, 'Sandboxes live');
  await ada.getByRole('button', { name: 'End it' }).click();
  await confirm(ada, 'End sandbox');
  await expect(row).toContainText('by a system admin');
  await expect(row).toContainText('a system admin ended it');
  await look(ed, '74-ended-sandboxes');
  // What is not one's own is not there, whoever asks.
  await go(ada, 'Sandboxes');
  await expect(ada.getByText('No sandboxes yet.')).toBeVisible();
  await endOfService(ada);

  await disableProfile(ada, workspace);
  const refusal = await body<Denied>(
    await askForSandbox(ed.request, server.address, workspace),
    403,
  );
  expect(refusal.code).toBe('profile');
  await go(ed, 'Code execution');
  await expect(
    ed.getByText('The runtime profile Spare of this workspace is disabled.'),
  ).toBeVisible();
  const denials = ed.getByRole('region', { name: 'last denials', exact: true });
  await expect(denials.getByRole('row', { name: 'profile' })).toContainText(EDITOR.email);
  await look(ed, '75-profile-disabled');
  edSawNothingWrong();
  await other.close();
  adaSawNothingWrong();
});

/** Lets code run in a workspace, and makes an editor of it. */
async function open(page: Page, workspace: string) {
  const { request } = page;
  const admin = `${server.address}/api/v1/admin`;
  await letCodeRun(request, server.address, workspace);
  const data = { ...EDITOR, workspace_id: workspace, role: 'editor' };
  await body(await request.post(`${admin}/users`, { data }), 201);
}

/** A lost connection is said, and comes back by itself. */
async function isLost(page: Page) {
  const notice = page.getByText('The connection is lost');
  await page.context().setOffline(true);
  await expect(notice).toBeVisible();
  await page.context().setOffline(false);
  await expect(notice).toHaveCount(0);
}

async function endByKeyboard(page: Page) {
  const dialog = page.getByRole('dialog');
  const end = page.getByRole('button', { name: 'End it' });
  await end.press('Enter');
  await expect(dialog).toContainText('End your sandbox?');
  await lookAtOverlay(page, '73-end-own-sandbox');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await end.press('Enter');
  await takesFocus(dialog);
  await dialog.getByRole('button', { name: 'End sandbox' }).press('Enter');
  await expect(dialog).toHaveCount(0);
}

/** Whoever manages a workspace looks after sandboxes of services too. */
async function endOfService(page: Page) {
  const words = ['api-key', 'create', '--workspace', 'Main', '--name', 'nightly'];
  const { token } = server.admin(...words) as { token: string };
  const made = await page.request.post(`${server.address}/api/v1/sandboxes`, {
    headers: { authorization: `Bearer ${token}` },
    data: {},
    timeout: 120_000,
  });
  await body(made, 201);
  const row = page.getByRole('row', { name: 'a service' });
  await row.getByRole('button', { name: 'End it' }).click();
  await expect(page.getByRole('dialog')).toContainText('End the sandbox of a service?');
  await confirm(page, 'End sandbox');
  await expect(row).toContainText('an admin of its workspace asked for it');
}

/** Gives the workspace a profile of its own, and disables that in the console. */
async function disableProfile(page: Page, workspace: string) {
  const profile_id = addProfile(server, 'Spare');
  await changeWorkspace(page.request, server.address, workspace, {
    profile_id,
  });
  await go(page, 'System → Sandbox');
  await page.getByRole('link', { name: 'This machine' }).click();
  await page.getByRole('button', { name: 'Disable' }).click();
  await confirm(page, 'Disable This machine');
  await expect(page.getByRole('dialog')).toContainText('is_default_profile');
  await page.keyboard.press('Escape');

  await go(page, 'System → Sandbox');
  await page.getByRole('link', { name: 'Spare' }).click();
  await page.getByRole('button', { name: 'Disable' }).click();
  await confirm(page, 'Disable Spare');
  await expect(page.getByRole('button', { name: 'Activate' })).toBeDisabled();
}
