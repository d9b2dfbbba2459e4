import { expect, test } from '@playwright/test';
import { body, type Denied, thisMachine } from '../lib/api.js';
import { look } from '../lib/look.js';
import { setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  const environment = { SANDBOX_ENABLED: 'false', SANDBOX_GUI_CONFIG: 'false' };
  server = await startServer('break-glass', environment);
});

test.afterAll(async () => server?.stop());

test('what the environment forces is said, and cannot be changed', async ({ page, context }) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await expect(page.getByText('Code execution is forced off', { exact: true })).toBeVisible();
  await expect(page.getByText('These pages are read-only')).toBeVisible();
  await expect(page.getByRole('switch', { name: 'Code execution' })).toBeDisabled();
  await look(page, '31-break-glass');

  await page.getByRole('link', { name: 'This machine' }).click();
  for (const name of ['Run test', 'Run canary', 'Acknowledge shared kernel', 'Activate']) {
    await expect(page.getByRole('button', { name })).toBeDisabled();
  }
  await look(page, '32-profile-read-only');

  const id = await thisMachine(page.request, server.address);
  const change = await page.request.post(`${server.address}/api/v1/admin/profiles/${id}/test`);
  expect((await body<Denied>(change, 403)).code).toBe('gui_config_locked');
  nothingWrong();
});
