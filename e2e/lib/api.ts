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
