import { type APIRequestContext, expect, type Page, test } from '@playwright/test';
import { body } from '../lib/api.js';
import { look, lookAtOverlay, onPhone } from '../lib/look.js';
import { go, setUp, turnOn } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const SUM = `
import csv
rows = [(n, n * n) for n in range(1, 101)]
with open('squares.csv', 'w', newline='') as out:
    csv.writer(out).writerows([('n', 'square'), *rows])
print(sum(square for _, square in rows))
`;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('first-run');
});

test.afterAll(async () => server?.stop());

test('an administrator goes from the link to a file that code made', async ({
  page,
  context,
  request,
}) => {
  const nothingWrong = watch(context, server.address);

  await page.goto(server.setupLink);
  await expect(page.getByRole('button', { name: 'Make administrator' })).toBeVisible();
  await look(page, '01-setup');
  await setUp(page, server.setupLink);
  await look(page, '02-sandbox-new');

  await activateInConsole(page);
  await switchOn(page);
  const key = await makeKey(page);

  await run(request, key);

  await go(page, 'Sandboxes live');
  await expect(page.getByRole('cell', { name: 'ada@example.com' })).toBeVisible();
  await look(page, '07-sandboxes');

  await go(page, 'Code execution');
  await expect(page.getByText('1 of 2 now')).toBeVisible();
  await expect(page.getByText('1 of 60 this hour')).toBeVisible();
  await look(page, '08-code-execution');

  await go(page, 'Audit logs');
  for (const action of ['profile.activate', 'deployment.update', 'workspace.update']) {
    await expect(page.getByRole('cell', { name: action }).first()).toBeVisible();
  }
  await look(page, '09-audit');
  await page.getByLabel('Action begins with').fill('profile.');
  await page.getByRole('button', { name: 'Show entries' }).click();
  await expect(page).toHaveURL(/action=profile\./);
  await expect(page.getByRole('cell', { name: 'deployment.update' })).toHaveCount(0);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export CSV' }).click();
  expect((await download).suggestedFilename()).toBe('audit.csv');

  await go(page, 'Users');
  await expect(page.getByRole('cell', { name: 'ada@example.com' })).toBeVisible();
  await look(page, '10-users');
  await go(page, 'Members');
  await expect(page.getByRole('cell', { name: 'ada@example.com' })).toBeVisible();
  await look(page, '11-members');

  await go(page, 'Sandboxes live');
  await page.getByRole('button', { name: 'End it' }).click();
  await expect(page.getByRole('dialog')).toContainText('End the sandbox of ada@example.com?');
  await lookAtOverlay(page, '12-end-sandbox');
  await page.getByRole('button', { name: 'End sandbox' }).click();
  await expect(page.getByText('No sandboxes.')).toBeVisible();

  await onPhone(page);
  const rail = page.getByRole('navigation');
  await expect(rail.getByRole('link', { name: 'Members' })).toBeHidden();
  await page.getByRole('button', { name: 'Open navigation' }).click();
  await go(page, 'Members');
  await expect(page.getByRole('heading', { level: 1, name: 'Members' })).toBeVisible();
  await expect(rail.getByRole('link', { name: 'Members' })).toBeHidden();
  await page.getByRole('button', { name: 'Open navigation' }).click();

  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in to Glovebox' })).toBeVisible();
  await look(page, '13-sign-in');
  nothingWrong();
});

async function activateInConsole(page: Page) {
  await page.getByRole('link', { name: 'This machine' }).click();
  const activate = page.getByRole('button', { name: 'Activate' });
  await expect(activate).toBeDisabled();
  await page.getByRole('button', { name: 'Run test' }).click();
  await expect(page.getByRole('button', { name: 'Test again' })).toBeVisible({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Run canary' }).click();
  const again = page.getByRole('button', { name: 'Run canary again' });
  await expect(again).toBeVisible({ timeout: 120_000 });
  const attempts = page.getByRole('region', { name: 'attempts', exact: true }).getByRole('row');
  await expect(attempts.nth(1)).toContainText('has to be OPEN');
  await page.getByRole('button', { name: 'Acknowledge shared kernel' }).click();
  // What is typed into the settings meanwhile stays, and can be saved.
  const idle = page.getByLabel('Idle limit (s)');
  await idle.fill('500');
  await activate.click();
  await expect(page.getByRole('button', { name: 'Disable' })).toBeVisible();
  await expect(idle).toHaveValue('500');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await expect(page.getByText('Saved. Sandboxes that run keep theirs.')).toBeVisible();
  await look(page, '03-profile');
}

async function switchOn(page: Page) {
  await go(page, 'System → Sandbox');
  await expect(page.getByRole('switch', { name: 'Code execution' })).toBeDisabled();
  await page.getByLabel('Default profile', { exact: true }).selectOption({ label: 'This machine' });
  // Chosen is not made yet.
  await expect(page.getByRole('switch', { name: 'Code execution' })).toBeDisabled();
  await page.getByRole('button', { name: 'Make it the default' }).click();
  await turnOn(page, 'Code execution');
  await look(page, '04-sandbox-on');

  await go(page, 'Workspaces');
  await expect(page.getByRole('link', { name: 'Main' })).toBeVisible();
  await look(page, '05-workspaces');
  await page.getByRole('link', { name: 'Main' }).click();
  await turnOn(page, 'Code execution in Main');
  await look(page, '05-workspace-on');
}

async function makeKey(page: Page): Promise<string> {
  await go(page, 'Your account');
  await page.getByLabel('Name of a new key').fill('journey');
  await page.getByRole('button', { name: 'Make API key' }).click();
  const secret = page.getByTestId('secret');
  await expect(secret).toBeVisible();
  await expect(page.getByRole('cell', { name: 'journey', exact: true })).toBeVisible();
  const key = (await secret.textContent()) ?? '';
  // A picture of a key would be a key.
  await page.reload();
  await expect(page.getByRole('cell', { name: 'journey', exact: true })).toBeVisible();
  await look(page, '06-account');
  return key;
}

/** Runs code with the key alone, as a program would. */
async function run(request: APIRequestContext, key: string) {
  const headers = { authorization: `Bearer ${key}` };
  const api = `${server.address}/api/v1`;
  const call = { headers, timeout: 120_000 };
  const made = await request.post(`${api}/sandboxes`, { ...call, data: {} });
  const sandbox = await body<{ id: string }>(made, 201);
  const executions = `${api}/sandboxes/${sandbox.id}/executions`;
  const asked = await request.post(executions, { ...call, data: { code: SUM } });
  const execution = await body<{ id: string }>(asked, 202);
  // The stream ends when the execution has.
  const events = await request.get(`${executions}/${execution.id}/events?after=0`, call);
  expect(await events.text()).toContain('338350');
  const listed = await request.get(`${api}/artifacts?sandbox_id=${sandbox.id}`, call);
  const artifacts = await body<{ items: { id: string; name: string }[] }>(listed, 200);
  const csv = artifacts.items.find((one) => one.name === 'squares.csv');
  expect(csv).toBeDefined();
  const content = await request.get(`${api}/artifacts/${csv?.id}/content`, call);
  expect(await content.text()).toContain('100,10000');
}
