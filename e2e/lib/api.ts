import { type APIRequestContext, type APIResponse, expect } from '@playwright/test';

export interface Denied {
  code: string;
  message: string;
  fix: string;
  request_id: string;
}

/** Expects the answer that this status is, and gives its body. */
export async function body<Body>(response: APIResponse, status: number): Promise<Body> {
  const text = await response.text();
  expect(response.status(), text).toBe(status);
  return JSON.parse(text) as Body;
}

/** The one profile that a new server has. */
export async function thisMachine(request: APIRequestContext, address: string): Promise<string> {
  const page = await body<{ items: { profile: { id: string } }[] }>(
    await request.get(`${address}/api/v1/admin/profiles`),
    200,
  );
  const id = page.items[0]?.profile.id;
  if (id === undefined) throw new Error('the server has no profile of its own machine');
  return id;
}

/** The id of the workspace that the first run made. */
export async function main(request: APIRequestContext, address: string): Promise<string> {
  const answer = await request.get(`${address}/api/v1/workspaces`);
  const { items } = await body<{ items: { workspace_id: string; name: string }[] }>(answer, 200);
  const found = items.find(({ name }) => name === 'Main');
  if (!found) throw new Error('the first run made no workspace `Main`');
  return found.workspace_id;
}

/** Asks for a sandbox, as whoever the request is signed in as. */
export const askForSandbox = (request: APIRequestContext, address: string, workspace: string) =>
  request.post(`${address}/api/v1/sandboxes`, {
    data: { workspace_id: workspace },
    timeout: 120_000,
  });

/** Changes a workspace that others may have changed since. */
export async function changeWorkspace(
  request: APIRequestContext,
  address: string,
  workspace: string,
  change: Record<string, unknown>,
): Promise<void> {
  const path = `${address}/api/v1/workspaces/${workspace}/code-execution`;
  const present = await body<{ workspace: { version: number } }>(await request.get(path), 200);
  const { version } = present.workspace;
  const to = `${address}/api/v1/admin/workspaces/${workspace}`;
  await body(await request.patch(to, { data: { version, ...change } }), 200);
}

/** Lets code run in a workspace of a new server. */
export async function letCodeRun(
  request: APIRequestContext,
  address: string,
  workspace: string,
): Promise<void> {
  await activate(request, address);
  const to = `${address}/api/v1/admin/sandbox`;
  await body(await request.patch(to, { data: { code_execution: true } }), 200);
  await changeWorkspace(request, address, workspace, { code_execution: true });
}

/** Proves and activates this machine's profile and makes it the default. */
export async function activate(request: APIRequestContext, address: string): Promise<void> {
  const id = await thisMachine(request, address);
  const profile = `${address}/api/v1/admin/profiles/${id}`;
  const long = { timeout: 120_000 };
  await body(await request.post(`${profile}/test`, long), 200);
  await body(await request.post(`${profile}/canary`, long), 200);
  await body(await request.put(`${profile}/acknowledgements/shared_kernel`), 200);
  await body(await request.post(`${profile}/activate`), 200);
  await body(
    await request.patch(`${address}/api/v1/admin/sandbox`, { data: { default_profile_id: id } }),
    200,
  );
}
