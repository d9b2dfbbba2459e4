import { type APIRequestContext, expect, type Page, test } from '@playwright/test';
import { body } from '../lib/api.js';
import { look } from '../lib/look.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

/** How many rows a list of the console has on a page. */
const ROWS = 200;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('upkeep');
});

test.afterAll(async () => server?.stop());

test('workspaces are made, lists go on over pages, and settings are kept', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await setProfile(page);
  await makeWorkspace(page);
  await goThroughPages(page);
  nothingWrong();
});

async function setProfile(page: Page) {
  await page.getByRole('link', { name: 'This machine' }).click();
  const idle = page.getByLabel('Idle limit (s)');
  const pool = page.getByLabel('Warm pool (sandboxes)');
  const longest = page.getByLabel('Longest execution (s)');
  const pictures = page.getByRole('checkbox', { name: 'svg' });
  const save = page.getByRole('button', { name: 'Save settings' });
  await expect(save).toBeDisabled();
  await expect(page.getByText('Takes effect when jobs come.').first()).toBeVisible();

  // Less than what an execution has that asks for nothing.
  await longest.fill('30');
  await save.click();
  await expect(page.getByRole('alert')).toContainText('is from 1 to max_execution_seconds');
  // The field that it is about says it in the words of the form.
  await expect(page.getByLabel('Execution limit (s)')).toHaveAccessibleDescription(
    /Execution limit is from 1 to Longest execution\./,
  );
  await look(page, '62-settings-refused');
  await longest.fill('120');
  await idle.fill('300');
  await pool.fill('2');
  await page.getByLabel('Class', { exact: true }).selectOption('MEDIUM');
  const start = page.getByLabel('Start of kernels');
  await expect(start).toHaveValue('template');
  await start.selectOption({ label: 'Program start of its own' });
  await expect(start).toHaveAccessibleDescription(/Nothing is shared between sandboxes/);
  await pictures.uncheck();
  await save.press('Enter');
  await expect(page.getByText('Saved. Sandboxes that run keep theirs.')).toBeVisible();

  await page.reload();
  await expect(longest).toHaveValue('120');
  await expect(idle).toHaveValue('300');
  await expect(pool).toHaveValue('2');
  await expect(page.getByLabel('Class', { exact: true })).toHaveValue('MEDIUM');
  await expect(start).toHaveValue('fresh');
  await expect(pictures).not.toBeChecked();
}

async function makeWorkspace(page: Page) {
  await go(page, 'Workspaces');
  const form = page.getByRole('region', { name: 'Make a workspace' });
  await form.getByLabel('Name').fill('Main');
  await form.getByRole('button', { name: 'Make workspace' }).click();
  await expect(form.getByText('taken', { exact: true })).toBeVisible();
  await form.getByLabel('Name').fill('Research');
  // A double click makes one, and does not complain that the name is taken.
  await form.getByRole('button', { name: 'Make workspace' }).dblclick();
  await expect(form.getByText('Research is there. No code runs in it yet.')).toBeVisible();
  await expect(page.getByRole('row', { name: 'Research' })).toContainText('off');
  // Whoever makes it owns it.
  await page.getByLabel('Switch workspace').selectOption({ label: 'Research' });
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  await go(page, 'Code execution');
  await expect(page.getByRole('definition').filter({ hasText: 'Research' })).toBeVisible();
  await go(page, 'Members');
  await expect(page.getByRole('row', { name: 'ada@example.com' })).toContainText('owner');
}

async function goThroughPages(page: Page) {
  await makeTeams(page.request);
  await go(page, 'Workspaces');
  await page.reload();
  const first = page.getByRole('link', { name: 'Main', exact: true });
  const last = page.getByRole('link', { name: `Team ${ROWS}`, exact: true });
  await expect(first).toBeVisible();
  await expect(last).toHaveCount(0);
  await expect(page.getByText('Looks at this page of the list only.')).toBeVisible();
  await page.getByRole('button', { name: 'Next page' }).click();
  await expect(last).toBeVisible();
  await expect(page).toHaveURL(/cursor=/);
  await expect(first).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Next page' })).toHaveCount(0);
  await look(page, '63-next-page');

  await page.goBack();
  await expect(first).toBeVisible();
  await page.goForward();
  await expect(last).toBeVisible();
  await page.reload();
  await expect(last).toBeVisible();
  await page.getByRole('button', { name: 'First page' }).click();
  await expect(first).toBeVisible();
}

/** Makes a page of workspaces more. */
async function makeTeams(request: APIRequestContext) {
  const names = Array.from({ length: ROWS }, (_, index) => `Team ${index + 1}`);
  for (const name of names) {
    const made = await request.post(`${server.address}/api/v1/admin/workspaces`, {
      data: { name },
    });
    await body(made, 201);
  }
}
