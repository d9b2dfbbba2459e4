import { expect, test } from '@playwright/test';
import { look } from '../lib/look.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('api-reference');
});

test.afterAll(async () => server?.stop());

test('the reference of the API is read without signing in, under the policy of every page', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  const answer = await page.goto(`${server.address}/api/v1/docs`);
  const policy = (await answer?.headerValue('content-security-policy')) ?? '';
  expect(policy).toContain("script-src 'self';");
  expect(policy).not.toContain('unsafe');
  await expect(page.getByRole('heading', { level: 1, name: 'API reference' })).toBeVisible();
  await look(page, '60-api-reference');

  await page.getByLabel('Filter calls').fill('makes a sandbox');
  await expect(page.getByRole('group')).toHaveCount(1);
  await page.getByText('/api/v1/sandboxes', { exact: true }).click();
  await expect(page.getByText('workspace_id', { exact: true }).first()).toBeVisible();
  await expect(page.getByText('With an API key or the cookie of a session.')).toBeVisible();
  await look(page, '61-api-reference-call');

  await page.goto(`${server.address}/api/v1/docs#executions_create`);
  await page.reload();
  await expect(page.getByText('Idempotency-Key (header)')).toBeVisible();
  nothingWrong();
});
