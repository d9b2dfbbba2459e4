/** What went wrong, in the one shape that the whole console shows. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    /** The status of the answer; 0 where none came. */
    readonly status: number,
    /** A stable word. */
    readonly code: string,
    message: string,
    readonly fix: string,
    readonly requestId: string | null,
    readonly details: Record<string, unknown>,
  ) {
    super(message);
  }

  /** Whether the session has ended, as opposed to a wrong password. */
  get isSignedOut(): boolean {
    return this.status === 401 && this.code === 'not_signed_in';
  }
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Reads the body of an answer that is an error; it may come from a program in front of ours. */
export function failureOf(status: number, body: unknown): Failure {
  const error = isRecord(body) ? body : {};
  return new Failure(
    status,
    text(error.code) ?? `http_${status}`,
    text(error.message) ?? `The server answered with status ${status}`,
    text(error.fix) ?? 'Try again. If it stays, look at the log of the server.',
    text(error.request_id),
    isRecord(error.details) ? error.details : {},
  );
}

/** No answer came at all. */
export const unreachable = (): Failure =>
  new Failure(
    0,
    'unreachable',
    'The server does not answer',
    'Check the connection and that the server runs, then try again.',
    null,
    {},
  );

/** What browsers say of a part of the console that they cannot load, each in its words. */
const NOT_LOADED = /dynamically imported module|importing a module script failed/i;

/** Anything thrown, as a failure: the router and React hand over what they caught. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  const message = thrown instanceof Error ? thrown.message : 'This page failed';
  if (NOT_LOADED.test(message)) {
    const fix = 'Check the connection and that the server runs, then load the page again.';
    return new Failure(0, 'not_loaded', 'A part of the console did not arrive', fix, null, {});
  }
  return new Failure(0, 'console', message, 'Load the page again.', null, {});
}
