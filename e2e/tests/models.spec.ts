import { expect, type Page, test } from '@playwright/test';
import { body } from '../lib/api.js';
import { box, isOver, reply, say } from '../lib/chat.js';
import { look, lookAtOverlay } from '../lib/look.js';
import { KEY, type Model, startModel } from '../lib/model.js';
import { choose, confirm, go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;
let model: Model;

test.beforeAll(async () => {
  server = await startServer('models');
  model = await startModel([]);
});

test.afterAll(async () => {
  await model?.stop();
  await server?.stop();
});

test('one of several models is the default, and what is deleted answers no more', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await add(page, 'Answers', KEY);
  await add(page, 'Refuses', 'sk-wrong');
  await go(page, 'System → Models');
  const [first, second] = ['Answers', 'Refuses'].map((name) => page.getByRole('row', { name }));
  await expect(first!).toContainText('default');
  await expect(second!).not.toContainText('default');
  await go(page, 'Chat');
  await say(page, 'Are you there?');
  await isOver(page);
  await expect(reply(page)).toContainText('ready');

  await go(page, 'System → Models');
  await choose(page, 'Refuses', 'Make it the default');
  await expect(second!).toContainText('default');
  await expect(first!).not.toContainText('default');
  await look(page, '120-models');
  await go(page, 'Chat');
  await say(page, 'And now?');
  await isOver(page);
  await expect(reply(page)).toContainText('does not accept the API key');
  await reply(page).getByRole('button', { name: 'Detail' }).click();
  await expect(reply(page)).toContainText('model_key');

  await keepsWhatIsTyped(page);
  await go(page, 'System → Models');
  await choose(page, 'Refuses', 'Delete Refuses');
  await expect(page.getByRole('dialog')).toContainText('Make another model the default first.');
  await expect(page.getByRole('button', { name: 'Delete Refuses' })).toBeDisabled();
  await lookAtOverlay(page, '121-delete-default');
  await page.keyboard.press('Escape');
  await choose(page, 'Answers', 'Make it the default');
  await expect(first!).toContainText('default');
  await choose(page, 'Refuses', 'Delete Refuses');
  await confirm(page, 'Delete Refuses');
  await expect(second!).toHaveCount(0);

  await choose(page, 'Answers', 'Delete Answers');
  await expect(page.getByRole('dialog')).toContainText('nobody answers words in chat');
  await confirm(page, 'Delete Answers');
  await expect(page.getByText('No model yet.')).toBeVisible();
  await go(page, 'Chat');
  await expect(page.getByText('No model is set, so nobody answers words')).toBeVisible();
  await expect(box(page)).toHaveAccessibleName('Python to run');
  nothingWrong();
});

/** The key beside the settings is no other change: nothing typed is lost, and it can be saved. */
async function keepsWhatIsTyped(page: Page) {
  await go(page, 'System → Models');
  await page.getByRole('link', { name: 'Refuses' }).click();
  const context = page.getByLabel('Context (tokens)');
  await context.fill('16000');
  await page.getByLabel('Another key').fill('sk-another');
  await page.getByRole('button', { name: 'Replace key' }).click();
  await expect(page.getByText('The key is set.')).toBeVisible();
  await expect(context).toHaveValue('16000');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await expect(page.getByText('Saved. Replies that run go on as they began.')).toBeVisible();
}

async function add(page: Page, name: string, api_key: string) {
  const data = { name, base_url: model.baseUrl, model: 'scripted', api_key, is_default: false };
  await body(await page.request.post(`${server.address}/api/v1/admin/models`, { data }), 201);
}
