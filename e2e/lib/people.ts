import { expect, type Locator, type Page } from '@playwright/test';

export const ADMIN = { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery' };
export const VIEWER = { email: 'vera@example.com', name: 'Vera', password: 'staple battery horse' };
export const EDITOR = { email: 'ed@example.com', name: 'Ed', password: 'horse battery staple' };

/** Follows the link that the server printed and makes the first administrator. */
export async function setUp(page: Page, link: string) {
  await page.goto(link);
  await page.getByLabel('E-mail').fill(ADMIN.email);
  await page.getByLabel('Name').fill(ADMIN.name);
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await page.getByRole('button', { name: 'Make administrator' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Sandbox' })).toBeVisible();
}

export async function signIn(page: Page, address: string, who: typeof ADMIN) {
  await page.goto(`${address}/sign-in`);
  await page.getByLabel('E-mail').fill(who.email);
  await page.getByLabel('Password', { exact: true }).fill(who.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Chat' })).toBeVisible();
}

/** Clicks a link of the rail: what comes then is for the journey to say. */
export const clickLink = (page: Page, link: string) =>
  page.getByRole('navigation').getByRole('link', { name: link, exact: true }).click();

/**
 * Goes to a page by the rail, as people do, and waits until it is there: the one before it stays
 * until then, and can hold what is looked for next.
 */
export async function go(page: Page, link: string) {
  await clickLink(page, link);
  const name = link.replace(/^System → /, '');
  await expect(page.getByRole('heading', { level: 1, name, exact: true })).toBeVisible();
}

/** Turns a switch by the keyboard and waits until the server has taken it. */
export async function turnOn(page: Page, name: string) {
  const control = page.getByRole('switch', { name });
  await expect(control).toBeEnabled();
  await control.press('Space');
  await expect(control).toBeChecked();
}

/** Chooses something that can be done with a row of a list. */
export async function choose(page: Page, row: string, action: string) {
  await page.getByRole('button', { name: `Actions for ${row}` }).click();
  await page.getByRole('menuitem', { name: action }).click();
}

/**
 * Waits until a menu or a dialog that was opened has taken the focus. It is seen a moment earlier,
 * and a key that is pressed then goes to what was there before.
 */
export const takesFocus = (opened: Locator) => expect(opened.locator(':focus')).toHaveCount(1);

/** Says yes to what a dialog asks. */
export const confirm = (page: Page, action: string) =>
  page.getByRole('dialog').getByRole('button', { name: action }).click();

/** Makes a user and a member of `Main`. */
export async function makeUser(page: Page, who: typeof ADMIN, role: string) {
  await go(page, 'Users');
  const form = page.getByRole('region', { name: 'Make a user' });
  await form.getByLabel('E-mail').fill(who.email);
  await form.getByLabel('Name', { exact: true }).fill(who.name);
  await form.getByLabel('First password').fill(who.password);
  await form.getByLabel('Workspace', { exact: true }).selectOption({ label: 'Main' });
  await form.getByLabel('Role in the workspace').selectOption(role);
  await page.getByRole('button', { name: 'Make user' }).click();
  await expect(page.getByRole('cell', { name: who.email })).toBeVisible();
}
