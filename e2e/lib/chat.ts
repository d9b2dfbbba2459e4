import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type Locator, type Page } from '@playwright/test';

/** Where a message is written. */
export const box = (page: Page): Locator =>
  page.getByRole('textbox', { name: /^(Message|Python to run)$/ });

/** The newest reply. */
export const reply = (page: Page): Locator => page.getByRole('article', { name: 'Reply' }).last();

/** The card of a file in the newest reply. */
export const card = (page: Page, name: string): Locator =>
  reply(page).getByRole('list', { name: 'Files' }).getByRole('listitem').filter({ hasText: name });

/** The panel beside the thread, or over it. */
export const preview = (page: Page, name: string): Locator =>
  page.getByRole('region', { name: `Preview of ${name}` });

/** Sends something by the keyboard, and waits until its reply begins. */
export async function say(page: Page, text: string) {
  const replies = page.getByRole('article', { name: 'Reply' });
  const before = await replies.count();
  await box(page).fill(text);
  await box(page).press('Enter');
  await expect(replies).toHaveCount(before + 1);
}

/** Waits until the newest reply has ended. */
export async function isOver(page: Page) {
  await expect(reply(page)).toHaveAttribute('aria-busy', 'false', { timeout: 120_000 });
}

/** Downloads by a button of the page and gives where the file lies. */
export async function download(page: Page, from: Locator, name: string): Promise<string> {
  const coming = page.waitForEvent('download');
  await from.getByRole('link', { name: /^Download/ }).click();
  const arrived = await coming;
  expect(arrived.suggestedFilename()).toBe(name);
  return arrived.path();
}

/** Opens an office file with the LibreOffice of this machine: what it cannot read it refuses. */
export function opensInOffice(file: string, filter: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'gbo-'));
  try {
    const profile = `-env:UserInstallation=file://${folder}/profile`;
    const words = ['--headless', profile, '--convert-to', filter, '--outdir', folder, file];
    execFileSync('soffice', words, { stdio: 'ignore', timeout: 120_000 });
    return readdirSync(folder).filter((name) => name !== 'profile');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
