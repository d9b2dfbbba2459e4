import { readFile } from 'node:fs/promises';
import { expect, type Page, test } from '@playwright/test';
import { letCodeRun, main } from '../lib/api.js';
import { box, card, download, isOver, opensInOffice, preview, reply, say } from '../lib/chat.js';
import { look, lookAtOverlay, onPhone } from '../lib/look.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const WORKBOOK = `
import openpyxl
book = openpyxl.Workbook()
sheet = book.active
sheet.title = 'Sales'
sheet.append(['Region', 'Total'])
for row in [['North', 120], ['South', 80.5], ['West', 42]]:
    sheet.append(row)
sheet.merge_cells('A6:B6')
sheet['A6'] = 'Checked by hand'
book.create_sheet('Notes')['A1'] = 'Nothing to note'
book.save('sales.xlsx')
print('\\x1b[32msaved\\x1b[0m')
242.5
`;

const LONG = `
import time
for n in range(400):
    print('line', n, flush=True)
    time.sleep(0.1)
`;

let server: Server;

test.beforeAll(async () => {
  server = await startServer('chat-code');
});

test.afterAll(async () => server?.stop());

test('somebody types Python without a model and takes its file home', async ({ page, context }) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await go(page, 'Chat');
  await expect(page.getByText('No model is set, so nobody answers words')).toBeVisible();
  // The gate says which of its levels it is, and what to do.
  await expect(page.getByRole('form').locator('..').getByText('deployment')).toBeVisible();
  await look(page, '80-chat-denied');

  await letCodeRun(page.request, server.address, await main(page.request, server.address));
  await page.reload();
  await expect(page.getByText('Your threads will be here')).toBeVisible();
  await makeWorkbook(page);
  await fails(page);
  await goesOn(page);
  await comesBack(page);
  await changes(page);
  await listed(page);
  nothingWrong();
});

async function makeWorkbook(page: Page) {
  await say(page, WORKBOOK.trim());
  await expect(page).toHaveURL(/\/chat\/[0-9a-f-]{36}/);
  await isOver(page);
  await expect(reply(page)).toContainText(/Ran 1 step in \d/);
  // What it printed, without the colours of a terminal, and what it came to.
  await expect(reply(page).getByRole('region', { name: 'Output' })).toHaveText('saved');
  await expect(reply(page).getByRole('region', { name: 'Result' })).toHaveText('242.5');
  await expect(card(page, 'sales.xlsx')).toContainText('version 1');
  await look(page, '81-chat-code');

  await card(page, 'sales.xlsx').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'sales.xlsx');
  const sheet = panel.getByRole('table', { name: 'Sheet Sales' });
  await expect(sheet.getByRole('cell', { name: '80.5' })).toBeVisible({
    timeout: 60_000,
  });
  await expect(sheet.getByRole('cell', { name: 'Checked by hand' })).toHaveAttribute(
    'aria-colspan',
    '2',
  );
  await expect(page).toHaveURL(/preview=artifact\./);
  await look(page, '82-preview-sheet');
  await panel.getByRole('tab', { name: 'Notes' }).click();
  await expect(panel.getByRole('cell', { name: 'Nothing to note' })).toBeVisible();
  const file = await download(page, panel, 'sales.xlsx');
  expect((await readFile(file)).subarray(0, 2).toString()).toBe('PK');
  expect(opensInOffice(file, 'csv')).toHaveLength(1);
  // Back leads to the thread without the panel.
  await page.goBack();
  await expect(panel).toHaveCount(0);
}

async function fails(page: Page) {
  await say(page, "print('before')\n{}['missing']");
  await isOver(page);
  await expect(reply(page)).toContainText("KeyError: 'missing'");
  await expect(reply(page)).toContainText('1 failed');
  await expect(reply(page).getByRole('button', { name: 'Try again' })).toBeVisible();
  await reply(page).getByRole('button', { name: 'Traceback' }).click();
  await expect(reply(page).getByRole('region', { name: 'Traceback' })).toContainText('KeyError');
  await look(page, '83-chat-failed');
}

/** A run goes on when the page is loaded anew; two tabs agree; one stop ends it for both. */
async function goesOn(page: Page) {
  await say(page, LONG.trim());
  await expect(reply(page)).toContainText('line 3');
  const other = await page.context().newPage();
  await other.goto(page.url());
  await expect(reply(other)).toContainText('line 5');
  await page.reload();
  await expect(reply(page)).toContainText('line 8');
  await isLeftInPeace(page);
  await expect(reply(page).getByRole('button', { name: 'Stop' })).toBeVisible();
  // The way to stop it stands where one writes too.
  await other.getByRole('form').getByRole('button', { name: 'Stop' }).click();
  for (const tab of [page, other]) {
    await expect(reply(tab)).toContainText('Stopped.');
    await expect(tab.getByRole('button', { name: 'Stop' })).toHaveCount(0);
  }
  await other.close();
}

/** Whoever goes up to read stays there while more comes, and is led back when they want to be. */
async function isLeftInPeace(page: Page) {
  const messages = page.getByRole('region', { name: 'Messages' });
  const left = () =>
    messages.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
  await expect.poll(left).toBeLessThan(2);
  await messages.evaluate((one) => one.scrollBy(0, -40));
  const top = await messages.evaluate((one) => one.scrollTop);
  const text = (await reply(page).textContent()) ?? '';
  await expect(reply(page)).not.toHaveText(text);
  expect(await messages.evaluate((one) => one.scrollTop)).toBe(top);
  await messages.evaluate((one) => one.scrollTo(0, 0));
  await page.getByRole('button', { name: 'Go to the newest' }).click();
  await expect.poll(left).toBeLessThan(2);
}

/** A lost connection is said, and comes back by itself; so does what was missed. */
async function comesBack(page: Page) {
  const notice = page.getByText('It goes on by itself as soon as the server answers.');
  await server.without(async () => expect(notice).toBeVisible());
  await expect(notice).toHaveCount(0);
  await say(page, "print('back', 'again')");
  await isOver(page);
  await expect(reply(page)).toContainText('back again');
}

/** A title of its own, a draft that stays, and a second version that gives way to the first. */
async function changes(page: Page) {
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('dialog').getByLabel('Title').fill('Sales of the quarter');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await expect(page.getByRole('heading', { name: 'Sales of the quarter' })).toBeVisible();

  await say(page, "open('note.csv', 'w').write('a,b\\n1,2\\n')");
  await isOver(page);
  await expect(card(page, 'note.csv')).toContainText('version 1');
  await say(page, "open('note.csv', 'w').write('a,b\\n3,4\\n')");
  await isOver(page);
  await expect(card(page, 'note.csv')).toContainText('version 2');
  await card(page, 'note.csv').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'note.csv');
  await panel.getByLabel('Version').selectOption({ label: 'Version 1' });
  await panel.getByRole('button', { name: 'Restore version 1' }).click();
  await lookAtOverlay(page, '84-restore');
  await page.getByRole('dialog').getByRole('button', { name: 'Restore version 1' }).click();
  await expect(page.getByText('Version 1 of note.csv was restored as version 3.')).toBeVisible();
  await expect(panel.getByLabel('Version')).toHaveValue(/./);
  await say(page, "print(open('note.csv').read())");
  await isOver(page);
  await expect(reply(page).getByRole('region', { name: 'Output' })).toContainText('1,2');
  await panel.getByRole('button', { name: 'Close the preview' }).click();

  await box(page).fill('kept = True');
  await page.getByRole('link', { name: 'New thread' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  await expect(box(page)).toHaveValue('');
  await page.getByRole('link', { name: 'Sales of the quarter' }).click();
  await expect(box(page)).toHaveValue('kept = True');
  await page.reload();
  await expect(box(page)).toHaveValue('kept = True');
}

async function listed(page: Page) {
  await go(page, 'Artifacts');
  const row = page.getByRole('row', { name: 'note.csv' });
  await expect(row).toContainText('3');
  await expect(row.getByRole('link', { name: 'Sales of the quarter' })).toBeVisible();
  await look(page, '85-artifacts');
  await row.getByRole('button', { name: 'Preview' }).click();
  await expect(preview(page, 'note.csv').getByRole('cell', { name: '1' })).toBeVisible();
  await lookAtOverlay(page, '86-artifact-preview');
  await page.keyboard.press('Escape');
  await row.getByRole('link', { name: 'Sales of the quarter' }).click();

  await onPhone(page);
  await page.getByRole('button', { name: 'Threads' }).click();
  await expect(
    page.getByRole('dialog').getByRole('link', { name: 'Sales of the quarter' }),
  ).toBeVisible();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete this thread' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  await page.goBack();
  await expect(page.getByText('There is no such thread')).toBeVisible();
}
