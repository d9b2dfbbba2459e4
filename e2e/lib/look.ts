import { expect, type Page } from '@playwright/test';
import axe, { type Result, type RunOptions } from 'axe-core';

declare global {
  interface Window {
    axe: typeof axe;
  }
}

export const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 900 };

const picture = (page: Page, name: string) =>
  page.screenshot({ path: `output/${name}.png`, fullPage: true });

type Scheme = 'light' | 'dark';

/** Shows a page in the light or the dark, and waits until it is drawn so. */
async function show(page: Page, scheme: Scheme, size: typeof WIDE) {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
  await page.setViewportSize(size);
  await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', scheme);
  await page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
}

/** Nothing sticks out at the side. */
async function fits(page: Page, name: string, size: typeof WIDE) {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width, `${name} fits`).toBeLessThanOrEqual(size.width);
  if (size !== NARROW) return;
  // Rows are cards on a phone: nothing of them is cut off at the side.
  const cut = await page.evaluate(() =>
    Array.from(document.querySelectorAll('table'))
      .map((table) => table.parentElement)
      .filter((box) => box !== null && box.scrollWidth > box.clientWidth)
      .map((box) => box?.getAttribute('aria-label') ?? 'a table'),
  );
  // Tables that somebody wrote keep their form, and are moved by themselves.
  expect(
    cut.filter((label) => label !== 'Table'),
    `tables of ${name} fit`,
  ).toEqual([]);
}

/** What keeps people out of a page, by all rules or by some. A page has no frames to look into. */
async function faults(page: Page, rules?: string[]): Promise<Result[]> {
  // Once for all that the console shows until it is loaded anew.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  return page.evaluate(async (rules) => {
    const only: RunOptions = rules ? { runOnly: { type: 'rule', values: rules } } : {};
    const found = await window.axe.run(document, { ...only, resultTypes: ['violations'] });
    return found.violations;
  }, rules);
}

/** Takes a picture, and expects nothing that keeps people out. */
async function scan(page: Page, name: string, rules?: string[]) {
  await picture(page, name);
  const grave = (await faults(page, rules))
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
  expect(grave, name).toEqual([]);
}

/** Looks at what stands over a page: a dialog, a menu. */
export async function lookAtOverlay(page: Page, name: string) {
  await show(page, 'light', WIDE);
  await scan(page, name);
}

/** Shows the page as on a phone, until it is looked at again. */
export const onPhone = (page: Page) => show(page, 'light', NARROW);

/** Looks at what is seen on a phone, as it is now. */
export async function lookOnPhone(page: Page, name: string) {
  await expect(page.getByText('Loading', { exact: true })).toHaveCount(0);
  await scan(page, name);
  await fits(page, name, NARROW);
}

/** Looks at a page in the light, in the dark, and on a phone. */
export async function look(page: Page, name: string) {
  await expect(page.getByText('Loading', { exact: true })).toHaveCount(0);
  await show(page, 'light', WIDE);
  await scan(page, name);
  await fits(page, name, WIDE);
  await show(page, 'dark', WIDE);
  // What is not about colours is the same in the dark.
  await scan(page, `${name}-dark`, ['color-contrast']);
  await show(page, 'light', NARROW);
  await picture(page, `${name}-narrow`);
  await fits(page, name, NARROW);
  await show(page, 'light', WIDE);
}
