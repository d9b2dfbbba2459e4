import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { barrierOf, meaningOf } from './denials';
import type { CodeExecution } from './views';

test('each denial that the guide names has its meaning and its fix', async () => {
  const guide = await readFile(new URL('../../../docs/guide/serve.md', import.meta.url), 'utf8');
  const table = guide.split('| denial |')[1]?.split('\n\n')[0] ?? '';
  const names = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map((found) => found[1] ?? '');
  expect(names).toContain('quota:max_concurrent');
  for (const name of names) expect(meaningOf(name), name).not.toBeNull();
  expect(meaningOf('toString')).toBeNull();
});

test('what stands in the way is told level by level, as the gate looks', () => {
  const view = {
    deployment_denial: { name: 'deployment', message: 'off', fix: 'on' },
    profile_name: 'Own',
    profile_state: 'disabled',
    workspace: { name: 'Main', code_execution: false },
  } as CodeExecution;
  expect(barrierOf(view)?.name).toBe('deployment');
  view.deployment_denial = null;
  expect(barrierOf(view)?.message).toBe('the runtime profile Own of this workspace is disabled');
  view.profile_state = 'active';
  expect(barrierOf(view)?.message).toBe('code execution is off in Main');
  view.workspace.code_execution = true;
  expect(barrierOf(view)).toBeNull();
});
