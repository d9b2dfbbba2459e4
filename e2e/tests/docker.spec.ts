import { readFile } from 'node:fs/promises';
import { expect, type Page, test } from '@playwright/test';
import { body, letCodeRun, main } from '../lib/api.js';
import { card, download, isOver, preview, reply, say } from '../lib/chat.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const FILES = `
import os
import pandas, pptx
deck = pptx.Presentation()
slide = deck.slides.add_slide(deck.slide_layouts[5])
slide.shapes.title.text = 'From a container'
deck.save('deck.pptx')
pandas.DataFrame({'n': [1, 2], 'square': [1, 4]}).to_csv('squares.csv', index=False)
print('in a container:', os.path.exists('/.dockerenv'))
`;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('docker', { GATEWAY_RUNTIME: 'docker' });
});

test.afterAll(async () => server?.stop());

test('somebody runs code in a container and looks at what it made', async ({ page, context }) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  // The runtime is what the profile says, and proves itself like any other.
  await expect(page.getByRole('link', { name: 'This machine (Docker)' })).toBeVisible();
  const workspace = await main(page.request, server.address);
  await letCodeRun(page.request, server.address, workspace);

  await go(page, 'Chat');
  await say(page, FILES.trim());
  await isOver(page);
  await expect(reply(page).getByRole('region', { name: 'Output' })).toHaveText(
    'in a container: True',
  );
  await seesTable(page);
  await seesDeck(page);

  // What code kept is there for the next step.
  await say(page, 'len(deck.slides)');
  await isOver(page);
  await expect(reply(page).getByRole('region', { name: 'Result' })).toHaveText('1');
  await endSandboxes(page, workspace);
  nothingWrong();
});

async function seesTable(page: Page) {
  await card(page, 'squares.csv').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'squares.csv');
  await expect(panel.getByRole('cell', { name: '4', exact: true })).toBeVisible({
    timeout: 120_000,
  });
  const file = await download(page, panel, 'squares.csv');
  expect(await readFile(file, 'utf8')).toContain('2,4');
  await panel.getByRole('button', { name: 'Close the preview' }).click();
}

/** Page by page where the image has LibreOffice; else its text, and why. */
async function seesDeck(page: Page) {
  await card(page, 'deck.pptx').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'deck.pptx');
  const drawn = panel.getByRole('img', { name: 'Page 1', exact: true });
  const missing = panel.getByText(/only its text is shown: there is no LibreOffice/i);
  await expect(drawn.or(missing).first()).toBeVisible({ timeout: 120_000 });
  if (await drawn.isVisible()) {
    await expect(drawn).toHaveJSProperty('complete', true);
    expect(await drawn.evaluate((page: HTMLImageElement) => page.naturalWidth)).toBeGreaterThan(0);
  }
  await expect(panel).toContainText('From a container');
  await panel.screenshot({ path: 'output/150-preview-in-a-container.png' });
  await panel.getByRole('button', { name: 'Close the preview' }).click();
}

/** Containers outlive a server. */
async function endSandboxes(page: Page, workspace: string) {
  const sandboxes = `${server.address}/api/v1/sandboxes`;
  const listed = await page.request.get(`${sandboxes}?workspace_id=${workspace}`);
  const { items } = await body<{ items: { id: string }[] }>(listed, 200);
  expect(items).toHaveLength(1);
  for (const { id } of items) {
    await body(await page.request.delete(`${sandboxes}/${id}`, { timeout: 120_000 }), 200);
  }
}
