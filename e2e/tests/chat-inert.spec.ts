import { createServer, type Server as Listener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@playwright/test';
import { letCodeRun, main } from '../lib/api.js';
import { card, isOver, preview, reply, say } from '../lib/chat.js';
import { go, setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('chat-inert');
});

test.afterAll(async () => server?.stop());

const hostile = (to: string) => `
<!doctype html>
<html><head>
<base href="${to}/base/">
<meta http-equiv="refresh" content="0; url=${to}/refresh">
<link rel="stylesheet" href="${to}/style.css"><link rel="prefetch" href="${to}/prefetch">
<link rel="preconnect" href="${to}"><link rel="dns-prefetch" href="${to}">
<style>@import url(${to}/import.css); body { background: url(${to}/background.png) }
@font-face { font-family: x; src: url(${to}/font) } p { font-family: x }</style>
<script src="${to}/script.js"></script>
<script>document.title = 'ran'; fetch('${to}/fetch'); new Image().src = '${to}/new-image';
top.location = '${to}/top'; document.forms[0].submit()</script>
</head><body onload="location = '${to}/onload'">
<h1>A page of somebody</h1><p id="quiet">Words</p>
<img src="${to}/image.png" srcset="${to}/larger.png 2x" onerror="fetch('${to}/onerror')">
<iframe src="${to}/frame"></iframe><IFRAME loading="lazy" src="${to}/lazy"></IFRAME>
<iframe srcdoc="<iframe src='${to}/within'></iframe>"></iframe><object data="${to}/object"></object><embed src="${to}/embed">
<video src="${to}/video" autoplay></video><audio src="${to}/audio" autoplay></audio>
<form action="${to}/form" method="post" target="_top"><button>Send it</button></form>
<a href="${to}/link" target="_top" ping="${to}/ping">Out to the top</a>
<a href="${to}/inside">Out of the frame</a>
<svg><script href="${to}/svg-script"></script><image href="${to}/svg-image"/></svg>
</body></html>`;

test('a page that code made stays inert in its frame', async ({ page }) => {
  const asked: string[] = [];
  const connected: string[] = [];
  const listener = await listen(asked, connected);
  try {
    const { port } = listener.address() as AddressInfo;
    const to = `http://127.0.0.1:${port}`;
    await setUp(page, server.setupLink);
    await letCodeRun(page.request, server.address, await main(page.request, server.address));
    await go(page, 'Chat');
    await say(page, `open('page.html', 'w').write(${JSON.stringify(hostile(to))})`);
    await isOver(page);
    await card(page, 'page.html').getByRole('button', { name: 'Preview' }).click();
    const panel = preview(page, 'page.html');
    await expect(panel.locator('iframe')).toHaveAttribute('sandbox', '');
    const frame = panel.frameLocator('iframe');
    await expect(frame.getByRole('heading', { name: 'A page of somebody' })).toBeVisible({
      timeout: 60_000,
    });
    const address = page.url();
    for (const name of ['Out to the top', 'Out of the frame']) {
      const link = frame.getByText(name, { exact: true });
      if ((await link.count()) > 0) await link.click();
      await expect(page.getByRole('heading', { name: 'page.html', exact: true })).toBeVisible();
    }
    const button = frame.getByRole('button', { name: 'Send it' });
    if ((await button.count()) > 0) await button.click();
    // Whatever was to come has had its time when the server has answered a whole run of code.
    await say(page, "print('still here')");
    await isOver(page);
    await expect(reply(page)).toContainText('still here');
    expect(page.url()).toBe(address);
    await page.screenshot({ path: 'output/103-inert-page.png' });
    expect(asked).toEqual([]);
    // A browser that only connects has told already whom it would ask.
    expect(connected).toEqual([]);
    // The listener hears what is asked of it.
    await page.request.get(`${to}/control`);
    expect(asked).toEqual(['/control']);
    expect(connected).toHaveLength(1);
  } finally {
    await page.close();
    listener.closeAllConnections();
    await new Promise((closed) => listener.close(closed));
  }
});

function listen(asked: string[], connected: string[]): Promise<Listener> {
  const listener = createServer((request, answer) => {
    asked.push(request.url ?? '');
    answer.end();
  });
  listener.on('connection', (caller) => connected.push(`port ${caller.remotePort}`));
  return new Promise((resolve) => listener.listen(0, '127.0.0.1', () => resolve(listener)));
}
