import { createServer, type Server as Listener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
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

/** Hosts below it exist nowhere: that they are looked up is all that there is to see. */
const LOOKED_UP = 'glovebox.invalid';

const hostile = (to: string) => `
<!doctype html>
<html><head>
<base href="${to}/base/">
<meta http-equiv="refresh" content="0; url=${to}/refresh">
<link rel="stylesheet" href="${to}/style.css"><link rel="prefetch" href="${to}/prefetch">
<link rel="preconnect" href="${to}"><link rel="dns-prefetch" href="${to}">
<link rel="preconnect" href="//page-connect.${LOOKED_UP}"><link rel="dns-prefetch" href="//page-hint.${LOOKED_UP}">
<meta http-equiv="x-dns-prefetch-control" content="on">
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
<a href="//page-link.${LOOKED_UP}">A link</a><iframe src="//page-frame.${LOOKED_UP}"></iframe>
<img src="//page-image.${LOOKED_UP}/x.png"><form action="//page-form.${LOOKED_UP}"></form>
<svg><script href="${to}/svg-script"></script><image href="${to}/svg-image"/>
<a href="#x"><set attributeName="href" to="${to}/svg-link"/><text y="20">Out by a change</text></a></svg>
</body></html>`;

test('a page that code made stays inert in its frame', async ({ playwright }, info) => {
  // What the browser asks of the network, and even of the name service, is in its own log. Hints it
  // follows only with a profile that stays.
  const log = info.outputPath('netlog.json');
  const { launchOptions = {} } = info.project.use;
  const args = [...(launchOptions.args ?? []), `--log-net-log=${log}`];
  const profile = info.outputPath('profile');
  const browser = await playwright.chromium.launchPersistentContext(profile, {
    ...launchOptions,
    args,
  });
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
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
    for (const name of ['Out to the top', 'Out of the frame', 'Out by a change']) {
      const link = frame.getByText(name, { exact: true });
      if ((await link.count()) > 0) await link.click();
      await expect(page.getByRole('heading', { name: 'page.html', exact: true })).toBeVisible();
    }
    const button = frame.getByRole('button', { name: 'Send it' });
    if ((await button.count()) > 0) await button.click();
    // A link that is shown is not looked up either before somebody clicks on it.
    await say(
      page,
      `from IPython.display import Markdown
display(Markdown('[words](http://shown-link.${LOOKED_UP}/)'))`,
    );
    await isOver(page);
    await expect(reply(page).getByRole('link', { name: 'words' })).toBeVisible();
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
    // And what is looked up is in the log: a page of another server gives the same hints.
    await page.goto(`${to}/hints`);
    await expect(page.getByText('Hints')).toBeVisible();
    await browser.close();
    const lookedUp = await hostsIn(log);
    expect(lookedUp).toContain(`control-hint.${LOOKED_UP}`);
    expect(lookedUp.filter((host) => !host.startsWith('control-'))).toEqual([]);
  } finally {
    await browser.close();
    listener.closeAllConnections();
    await new Promise((closed) => listener.close(closed));
  }
});

function listen(asked: string[], connected: string[]): Promise<Listener> {
  const listener = createServer((request, answer) => {
    if (request.url === '/hints') {
      answer.setHeader('content-type', 'text/html');
      answer.end(`Hints<link rel="dns-prefetch" href="//control-hint.${LOOKED_UP}">`);
      return;
    }
    asked.push(request.url ?? '');
    answer.end();
  });
  listener.on('connection', (caller) => connected.push(`port ${caller.remotePort}`));
  return new Promise((resolve) => listener.listen(0, '127.0.0.1', () => resolve(listener)));
}

/** The hosts below ours that a browser looked up or connected to. */
async function hostsIn(log: string): Promise<string[]> {
  const text = await readFile(log, 'utf8');
  const named = new RegExp(`[a-z-]+\\.${LOOKED_UP.replaceAll('.', '\\.')}`, 'g');
  const lines = text.split('\n').filter((line) => line.includes('"host"'));
  return [...new Set(lines.flatMap((line) => line.match(named) ?? []))];
}
