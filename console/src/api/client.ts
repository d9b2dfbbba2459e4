import createClient from 'openapi-fetch';
import { failureOf, unreachable } from './failure';
import type { paths } from './schema';

/** The one client of the API. The browser adds the session's cookie. */
export const api = createClient<paths>({ baseUrl: window.location.origin });

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** Gives what a call answers, or throws a `Failure`. */
export async function answer<Data>(call: Promise<Answer<Data>>): Promise<Data> {
  let given: Answer<Data>;
  try {
    given = await call;
  } catch {
    throw unreachable();
  }
  if (!given.response.ok) throw failureOf(given.response.status, given.error);
  // A call without a body answers nothing, and its type says so.
  return given.data as Data;
}
