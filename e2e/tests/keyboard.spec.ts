import { expect, type Locator, type Page, test } from '@playwright/test';
import { letCodeRun, main } from '../lib/api.js';
import { box, card, isOver, preview, reply } from '../lib/chat.js';
import { setUp, takesFocus } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const FILE = "open('table.csv', 'w').write('a,b\\n1,2\\n')";

const MANY = "import time\nfor n in range(300): print('line', n)\ntime.sleep(60)";

let server: Server;

test.beforeAll(async () => {
  server = await startServer('keyboard');
});

test.afterAll(async () => server?.stop());

test('chat is used from the first word to the last by the keyboard alone', async ({
  page,
  context,
}) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await letCodeRun(page.request, server.address, await main(page.request, server.address));
  await page.goto(`${server.address}/`);
  // One can type at once, and goes on typing in the thread that it began.
  await expect(box(page)).toBeFocused();
  await exampleByKeyboard(page);
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(FILE);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/chat\/[0-9a-f-]{36}/);
  await isOver(page);
  await expect(box(page)).toBeFocused();
  await previewByKeyboard(page);
  await foldByKeyboard(page);
  await renameByKeyboard(page);
  await stopByKeyboard(page);
  await skipByKeyboard(page);
  nothingWrong();
});

/** Presses Tab until something has the focus, and expects it to be seen there. */
async function tabTo(page: Page, wanted: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab') {
  const isThere = () => wanted.evaluate((one) => one === document.activeElement);
  for (let presses = 0; presses < 60 && !(await isThere()); presses += 1) {
    await page.keyboard.press(key);
  }
  await expect(wanted).toBeFocused();
  await expect(wanted).toBeInViewport();
  // Of a field where one writes the frame around it shows it.
  const outline = await wanted.evaluate((one) =>
    one instanceof HTMLTextAreaElement ? 'frame' : getComputedStyle(one).outlineStyle,
  );
  expect(outline, 'the focus is seen').not.toBe('none');
}

/** An example is put where one writes, to be changed before it is sent. */
async function exampleByKeyboard(page: Page) {
  await tabTo(page, page.getByRole('button', { name: 'Add up squares' }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await expect(box(page)).toBeFocused();
  await expect(box(page)).toHaveValue(/sum\(n \* n/);
  await expect(page.getByRole('group', { name: 'Examples' })).toHaveCount(0);
}

async function previewByKeyboard(page: Page) {
  const open = card(page, 'table.csv').getByRole('button', { name: 'Preview' });
  await tabTo(page, open, 'Shift+Tab');
  await page.keyboard.press('Enter');
  const panel = preview(page, 'table.csv');
  await expect(panel.getByRole('heading', { name: 'table.csv' })).toBeFocused();
  await expect(panel.getByRole('cell', { name: '2' })).toBeVisible({ timeout: 60_000 });
  await tabTo(page, panel.getByRole('link', { name: 'Download' }));
  await page.keyboard.press('Escape');
  await expect(panel).toHaveCount(0);
  // Whoever was led away is led back.
  await expect(open).toBeFocused();
}

async function foldByKeyboard(page: Page) {
  const fold = reply(page).getByRole('button', { name: /^Ran 1 step in/ });
  await tabTo(page, fold, 'Shift+Tab');
  await expect(fold).toHaveAttribute('aria-expanded', 'true');
  await page.keyboard.press('Space');
  await expect(fold).toHaveAttribute('aria-expanded', 'false');
}

async function renameByKeyboard(page: Page) {
  await tabTo(page, page.getByRole('button', { name: /^Actions for/ }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await takesFocus(page.getByRole('menu'));
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('menuitem', { name: 'Rename' })).toBeFocused();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Title')).toBeFocused();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('By the keyboard');
  await page.keyboard.press('Enter');
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('By the keyboard');
}

/** What is printed last is in sight while it comes; who goes up to read is left there. */
async function stopByKeyboard(page: Page) {
  await tabTo(page, box(page));
  await page.keyboard.insertText(MANY);
  await page.keyboard.press('Enter');
  const output = reply(page).getByRole('region', { name: 'Output' });
  await expect(output).toContainText('line 299');
  const left = () =>
    output.evaluate((one) => Math.round(one.scrollHeight - one.scrollTop - one.clientHeight));
  await expect.poll(left).toBeLessThan(2);
  await tabTo(page, output, 'Shift+Tab');
  await page.keyboard.press('Home');
  await expect.poll(left).toBeGreaterThan(100);

  const stop = page.getByRole('form').getByRole('button', { name: 'Stop' });
  await tabTo(page, stop);
  await page.keyboard.press('Enter');
  await expect(box(page)).toBeFocused();
  await expect(reply(page)).toContainText('Stopped.');
  await expect(stop).toHaveCount(0);
  await expect.poll(left).toBeGreaterThan(100);
  await tabTo(page, reply(page).getByRole('button', { name: 'Try again' }), 'Shift+Tab');
}

/** The first stop of a page leads past what stands around it. */
async function skipByKeyboard(page: Page) {
  await page.goto(`${server.address}/account`);
  await expect(page.getByRole('heading', { level: 1, name: 'Your account' })).toBeVisible();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Skip to the page' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('#page')).toBeFocused();
}
