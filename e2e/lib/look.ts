import { AxeBuilder } from '@axe-core/playwright';
import { expect, type Page } from '@playwright/test';

const NARROW = { width: 360, height: 740 };
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
}

/** Looks for what keeps people out, and takes a picture. */
async function scan(page: Page, name: string) {
  await picture(page, name);
  const found = await new AxeBuilder({ page }).analyze();
  const grave = found.violations
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

/** Looks at a page in the light, in the dark, and on a phone. */
export async function look(page: Page, name: string) {
  await expect(page.getByText('Loading', { exact: true })).toHaveCount(0);
  await show(page, 'light', WIDE);
  await scan(page, name);
  await fits(page, name, WIDE);
  await show(page, 'dark', WIDE);
  await scan(page, `${name}-dark`);
  await show(page, 'light', NARROW);
  await picture(page, `${name}-narrow`);
  await fits(page, name, NARROW);
  await show(page, 'light', WIDE);
}
