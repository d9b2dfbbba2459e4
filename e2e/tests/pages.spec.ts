import { readFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';
import { body, main, thisMachine } from '../lib/api.js';
import { look } from '../lib/look.js';
import { setUp } from '../lib/people.js';
import { type Server, startServer } from '../lib/server.js';
import { watch } from '../lib/watch.js';

let server: Server;

test.beforeAll(async () => {
  server = await startServer('pages');
});

test.afterAll(async () => server?.stop());

/** Where the console has pages, as its router says: one that is new is looked at too. */
function paths(): Set<string> {
  const router = readFileSync('../console/src/app/router.tsx', 'utf8');
  return new Set([...router.matchAll(/ path: '([^']+)'/g)].flatMap(([, path]) => path ?? []));
}

test('every page keeps nobody out, in the light, in the dark and on a phone', async ({
  page,
  context,
}) => {
  test.setTimeout(600_000);
  const nothingWrong = watch(context, server.address);
  await setUp(page, server.setupLink);
  const { request } = page;
  const api = `${server.address}/api/v1`;
  const workspace = await main(request, server.address);
  const profile = await thisMachine(request, server.address);
  const ask = async (path: string, data: Record<string, unknown>) => {
    const made = await request.post(`${api}${path}`, { data });
    return (await body<{ id: string }>(made, 201)).id;
  };
  const ids: Record<string, string> = {
    $workspace: workspace,
    $profile: profile,
    $model: await ask('/admin/models', {
      name: 'A model',
      base_url: 'http://127.0.0.1:9/v1',
      model: 'none',
      is_default: false,
    }),
    $thread: await ask('/threads', { workspace_id: workspace, title: 'A thread' }),
  };
  const found = paths();
  expect(found).toContain('/w/$workspace/chat');
  for (const path of found) {
    // A thread is a part of the chat; the others stand by themselves.
    const whole = path === '$thread' ? '/w/$workspace/chat/$thread' : path;
    const address = whole.replaceAll(/\$\w+/g, (name) => {
      const id = ids[name];
      if (id === undefined) throw new Error(`there is no ${name} for the page ${whole}`);
      return id;
    });
    await page.goto(`${server.address}${address}`);
    await expect(page.getByRole('heading', { level: 1 })).toHaveCount(1);
    await look(page, `150-page${whole.replaceAll(/[/$]/g, '-')}`);
  }
  nothingWrong();
});
