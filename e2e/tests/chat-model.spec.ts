import { readFile, truncate, writeFile } from 'node:fs/promises';
import { expect, type Locator, type Page, test } from '@playwright/test';
import { letCodeRun, main } from '../lib/api.js';
import { box, card, download, isOver, opensInOffice, preview, reply, say } from '../lib/chat.js';
import { look } from '../lib/look.js';
import { KEY, type Model, startModel, type Task } from '../lib/model.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

const SLIDES: Task = {
  said: 'five slides',
  first: 'I look at the workbook.\n\n',
  task: 'Make deck.pptx with a title and a chart for each region of sales.xlsx',
  files: ['sales.xlsx'],
  steps: [
    {
      plan: 'Reading the workbook',
      code: "import pandas as pd\nsales = pd.read_excel('sales.xlsx')\nprint(sales)",
    },
    {
      plan: 'Drawing a chart for each region',
      code: `
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

deck = Presentation()
title = deck.slides.add_slide(deck.slide_layouts[0])
title.shapes.title.text = 'Sales by region'
for region, rows in sales.groupby('Region', sort=False):
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = region
    data = CategoryChartData()
    data.categories = list(rows['Quarter'])
    data.add_series(region, list(rows['Total']))
    kind = XL_CHART_TYPE.COLUMN_CLUSTERED
    slide.shapes.add_chart(kind, Inches(1), Inches(2), Inches(8), Inches(5), data)
deck.save('deck.pptx')
print(len(deck.slides), 'slides')
`.trim(),
    },
  ],
  last: 'Here are **five slides**, one for each region after the title. [Look](javascript:alert(1)) ![at](https://x.example/a.png)',
};

const TOTALS: Task = {
  said: 'by vendor',
  first: '',
  task: 'Add up the amounts of all CSV files by vendor into totals.xlsx',
  files: ['january.csv', 'february.csv'],
  steps: [
    {
      plan: 'Adding up the invoices',
      code: `
import glob
import pandas as pd
invoices = pd.concat([pd.read_csv(name) for name in sorted(glob.glob('*.csv'))])
totals = invoices.groupby('vendor', as_index=False)['amount'].sum()
totals.to_excel('totals.xlsx', index=False)
print(len(invoices), 'invoices')
`.trim(),
    },
  ],
  last: 'The totals are in `totals.xlsx`.',
};

const WORKBOOK = `
import openpyxl
book = openpyxl.Workbook()
book.active.append(['Region', 'Quarter', 'Total'])
for region in ['North', 'South', 'East', 'West']:
    for quarter in range(1, 5):
        book.active.append([region, f'Q{quarter}', quarter * len(region)])
book.save('sales.xlsx')
`.trim();

let server: Server;
let model: Model;

test.beforeAll(async () => {
  server = await startServer('chat-model');
  model = await startModel([SLIDES, TOTALS]);
});

test.afterAll(async () => {
  await model?.stop();
  await server?.stop();
});

test('a workbook becomes five slides, and invoices become totals', async ({ page, context }) => {
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  await letCodeRun(page.request, server.address, await main(page.request, server.address));
  await go(page, 'Chat');
  const workbook = await makeWorkbook(page);
  await addModel(page);
  await askForSlides(page, workbook);
  await askForTotals(page);
  await knowledge(page);
  nothingWrong();
});

/** A workbook as people have it, made by the library that most of them come from. */
async function makeWorkbook(page: Page): Promise<Buffer> {
  await say(page, WORKBOOK);
  await isOver(page);
  const file = await readFile(await download(page, card(page, 'sales.xlsx'), 'sales.xlsx'));
  // Its sandbox ends with it: a workspace has few at once.
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete this thread' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  return file;
}

async function addModel(page: Page) {
  await go(page, 'System → Models');
  await expect(page.getByText('No model yet.')).toBeVisible();
  await look(page, '90-no-models');
  const form = page.getByRole('region', { name: 'Add a model' });
  await form.getByLabel('Name', { exact: true }).fill('Scripted');
  await form.getByLabel('Base URL').fill(model.baseUrl);
  await form.getByLabel('Model', { exact: true }).fill('scripted');
  await form.getByLabel('API key').fill('sk-wrong');
  await form.getByRole('button', { name: 'Add model' }).click();

  await expect(page.getByRole('heading', { level: 1, name: 'Scripted' })).toBeVisible();
  await page.getByRole('button', { name: 'Test this model' }).click();
  const steps = page.getByRole('region', {
    name: 'steps of the test',
    exact: true,
  });
  await expect(steps.getByText('fail', { exact: true })).toBeVisible();
  await look(page, '91-model-refused');
  const key = page.getByRole('region', { name: 'API key' });
  await key.getByLabel('Another key').fill(KEY);
  await key.getByRole('button', { name: 'Replace key' }).click();
  await expect(key.getByText('The key is set.')).toBeVisible();
  // It goes in and never comes out.
  await expect(page.getByText(KEY)).toHaveCount(0);
  await page.getByRole('button', { name: 'Test again' }).click();
  await expect(steps.getByText('fail', { exact: true })).toHaveCount(0);
  await look(page, '92-model');
}

async function askForSlides(page: Page, workbook: Buffer) {
  await go(page, 'Chat');
  await expect(page.getByRole('switch', { name: 'Run code' })).not.toBeChecked();
  await page.locator('input[type=file]').setInputFiles({
    name: 'sales.xlsx',
    mimeType: 'application/octet-stream',
    buffer: workbook,
  });
  const chips = page.getByRole('list', { name: 'Files of the next message' });
  await expect(chips.getByRole('button', { name: 'Remove sales.xlsx' })).toBeVisible();
  await box(page).fill('Make five slides with a chart per region');
  await limits(page);
  await keys(page);
  await box(page).press('Enter');
  await expect(reply(page)).toBeVisible();
  await isOver(page);
  await expect(reply(page)).toContainText('I look at the workbook.');
  await expect(reply(page)).toContainText('Here are five slides');
  // Nothing of what a model writes leads out of the page by itself.
  await expect(reply(page).getByRole('link', { name: 'Look' })).toHaveCount(0);
  await expect(reply(page).locator('img[src^="https"]')).toHaveCount(0);
  await steps(page);

  await expect(card(page, 'deck.pptx')).toContainText('Presentation');
  await card(page, 'deck.pptx').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'deck.pptx');
  await expect(panel.getByText('Page 1 of 5')).toBeVisible({
    timeout: 120_000,
  });
  const drawn = panel.getByRole('img', { name: 'Page 1', exact: true });
  await expect(drawn).toHaveJSProperty('complete', true);
  expect(await drawn.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBeGreaterThan(400);
  // Whoever does not see the pages has their text.
  await expect(panel.getByText('Sales by region')).toBeAttached();
  await look(page, '94-preview-pages');
  await turnPages(panel);
  await panel.getByRole('button', { name: 'Page 4' }).click();
  await expect(panel.getByText('Page 4 of 5')).toBeVisible();
  await panel.getByRole('button', { name: 'Larger' }).click();
  await expect(panel.getByText('150 %')).toBeVisible();
  const file = await download(page, panel, 'deck.pptx');
  expect(opensInOffice(file, 'pdf')).toHaveLength(1);
  await panel.getByRole('button', { name: 'Close the preview' }).click();
  // The first page made small stands in the card.
  await expect(card(page, 'deck.pptx').locator('img')).toBeVisible();
}

/** Pages are turned and made larger by the keyboard too. */
async function turnPages(panel: Locator) {
  const document = panel.getByRole('region', { name: 'Document' });
  await document.press('ArrowRight');
  await expect(panel.getByText('Page 2 of 5')).toBeVisible();
  await document.press('End');
  await expect(panel.getByText('Page 5 of 5')).toBeVisible();
  await expect(panel.getByRole('button', { name: 'Next page' })).toBeDisabled();
  await document.press('+');
  await expect(panel.getByText('150 %')).toBeVisible();
  await document.press('0');
  await expect(panel.getByRole('button', { name: 'Fit' })).toHaveAttribute('aria-pressed', 'true');
  // Tab comes to one small page, and the arrows lead to the others.
  const small = panel.getByRole('navigation', { name: 'Pages' }).getByRole('button');
  await small.last().focus();
  await small.last().press('ArrowUp');
  await expect(small.nth(3)).toBeFocused();
  await expect(panel.getByText('Page 4 of 5')).toBeVisible();
  await small.nth(3).press('Home');
  await expect(small.first()).toBeFocused();
  await panel.getByRole('button', { name: 'Next page' }).click();
  await expect(panel.getByText('Page 2 of 5')).toBeVisible();
}

/** A file that is too large is told so before any of it is sent, and goes again. */
async function limits(page: Page) {
  // A file of the disk, of which nothing has to be carried into the browser.
  const large = test.info().outputPath('large.bin');
  await writeFile(large, '');
  await truncate(large, 26 * 1024 * 1024);
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url()));
  await page.locator('input[type=file]').setInputFiles(large);
  const chips = page.getByRole('list', { name: 'Files of the next message' });
  await expect(chips).toContainText('It has 26 MiB, and a file may have 25 MiB.');
  await look(page, '93-composer');
  await chips.getByRole('button', { name: 'Remove large.bin' }).click();
  await expect(chips.getByRole('listitem')).toHaveCount(1);
  expect(sent.filter((url) => url.includes('large.bin'))).toEqual([]);
  await sendsAgain(page);
}

/** A file that got lost on the way is told so, and goes anew by one click. */
async function sendsAgain(page: Page) {
  const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') };
  const chips = page.getByRole('list', { name: 'Files of the next message' });
  await page.route(/attachments\?/, (route) => route.abort());
  await page.locator('input[type=file]').setInputFiles(notes);
  await expect(chips.getByRole('alert')).toContainText('The server does not answer.');
  await page.unroute(/attachments\?/);
  await chips.getByRole('button', { name: 'Try again to send notes.txt' }).click();
  await expect(chips.getByRole('alert')).toHaveCount(0);
  await expect(chips.getByRole('listitem').filter({ hasText: 'notes.txt' })).toContainText('6 B');
  await chips.getByRole('button', { name: 'Remove notes.txt' }).click();
  await expect(chips.getByRole('listitem')).toHaveCount(1);
}

/** Enter that chooses a character sends nothing, and with Shift it begins a line. */
async function keys(page: Page) {
  const text = await box(page).inputValue();
  await box(page).evaluate((area) => {
    const options = { key: 'Enter', isComposing: true, bubbles: true, cancelable: true };
    area.dispatchEvent(new KeyboardEvent('keydown', options));
  });
  await box(page).press('Shift+Enter');
  await expect(box(page)).toHaveValue(`${text}\n`);
  // A picture from the clipboard is a file like any other.
  await box(page).evaluate((area) => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(['x'], 'pasted.txt'));
    area.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }));
  });
  const chips = page.getByRole('list', { name: 'Files of the next message' });
  await chips.getByRole('button', { name: 'Remove pasted.txt' }).click();
  await expect(chips.getByRole('listitem')).toHaveCount(1);
}

/** Steps are folded, and there when they are wanted. */
async function steps(page: Page) {
  const fold = reply(page).getByRole('button', { name: /^Ran 2 steps in/ });
  await expect(fold).toHaveAttribute('aria-expanded', 'false');
  await fold.click();
  await expect(reply(page)).toContainText('Handed over: ');
  await expect(reply(page)).toContainText('Drawing a chart for each region');
  const second = reply(page).getByRole('region', { name: 'Step 2' });
  await second.getByRole('button', { name: 'Code', exact: true }).click();
  await expect(second.getByRole('region', { name: 'Python' })).toContainText('add_chart');
  await expect(second.getByRole('region', { name: 'Output' })).toHaveText('5 slides');
  await expect(second).toContainText('Saved deck.pptx (version 1');
  await look(page, '95-steps');
  await fold.click();
}

async function askForTotals(page: Page) {
  await page.getByRole('link', { name: 'New thread' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
  // Dropped anywhere on the page, several at once.
  const dropped = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    const months = {
      january: 'Acme,100\nBolt,20.5',
      february: 'Acme,11\nCode,7',
    };
    for (const [month, rows] of Object.entries(months)) {
      transfer.items.add(new File([`vendor,amount\n${rows}\n`], `${month}.csv`));
    }
    return transfer;
  });
  const heading = page.getByRole('heading', { level: 1, name: 'Chat' });
  await heading.dispatchEvent('dragover', { dataTransfer: dropped });
  await expect(page.getByText('Drop the files to attach them')).toBeVisible();
  await heading.dispatchEvent('drop', { dataTransfer: dropped });
  const chips = page.getByRole('list', { name: 'Files of the next message' });
  await expect(chips.getByRole('button', { name: /^Remove/ })).toHaveCount(2);
  await say(page, 'Total the invoices by vendor');
  await isOver(page);
  await card(page, 'totals.xlsx').getByRole('button', { name: 'Preview' }).click();
  const panel = preview(page, 'totals.xlsx');
  await expect(panel.getByRole('cell', { name: '111' })).toBeVisible({
    timeout: 60_000,
  });
  await expect(panel.getByRole('cell', { name: '20.5' })).toBeVisible();
  await look(page, '96-totals');
  expect(opensInOffice(await download(page, panel, 'totals.xlsx'), 'csv')).toHaveLength(1);
}

async function knowledge(page: Page) {
  await go(page, 'Knowledge');
  await expect(page.getByText('No files yet.')).toBeVisible();
  const prices = {
    name: 'prices.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('a,b\n1,2\n'),
  };
  await page.locator('input[type=file]').setInputFiles([prices]);
  const row = page.getByRole('row', { name: 'prices.csv' });
  await expect(row).toContainText('Ada');
  await page.locator('input[type=file]').setInputFiles([prices]);
  await expect(page.getByRole('alert')).toContainText('a file of this name');
  await look(page, '97-knowledge');
  await row.getByRole('button', { name: 'Preview' }).click();
  await expect(preview(page, 'prices.csv').getByRole('cell', { name: '2' })).toBeVisible();
  await page.keyboard.press('Escape');
  await row.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete prices.csv' }).click();
  await expect(row).toHaveCount(0);
}
