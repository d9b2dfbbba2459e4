import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A server of the program as it is installed, with data of its own. */
export interface Server {
  address: string;
  setupLink: string;
  /** The file with its rows. */
  database: string;
  /** Runs `glovebox admin` on its data, as who looks after its machine, and gives the answer. */
  admin: (...words: string[]) => unknown;
  /** Ends it for as long as something is done, and starts it again at the same address. */
  without: (done: () => Promise<void>) => Promise<void>;
  stop: () => Promise<void>;
}

const START_LIMIT_MS = 60_000;

/** Who clears up behind a journey, whoever has administered the server in it. */
const KEEPER = { email: 'keeper@example.com', password: 'correct horse battery' };

export function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: \`make journeys\` sets it`);
  return value;
}

/** Starts a server on the root tree of the tests and waits for the link that it prints. */
export async function startServer(
  name: string,
  environment: Record<string, string> = {},
): Promise<Server> {
  const program = join(setting('GLOVEBOX_PROGRAMS'), 'glovebox');
  // A short path: the sockets of sandboxes lie below it.
  const data = await mkdtemp(join(tmpdir(), 'gbe-'));
  // The ids of boxes have to walk through it.
  await chmod(data, 0o711);
  await mkdir('output', { recursive: true });
  const places = ['--data', setting('GLOVEBOX_TEST_DATA'), '--server-data', data];
  const log = createWriteStream(`output/${name}.log`);
  const start = (listen: string) => {
    const started = spawn(program, ['serve', '--listen', listen, ...places], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    started.stderr.pipe(log, { end: false });
    return started;
  };
  let child = start('127.0.0.1:0');
  const admin = (...words: string[]): unknown => {
    const all = ['admin', ...words, ...places, '--json'];
    return JSON.parse(execFileSync(program, all, { encoding: 'utf8' }));
  };
  let address: string | null = null;
  const stop = async () => {
    try {
      if (address !== null && child.exitCode === null) {
        const words = ['admin', 'create-admin', '--email', KEEPER.email, '--password-stdin'];
        execFileSync(program, [...words, ...places], { input: KEEPER.password });
        await endSandboxes(address);
      }
    } finally {
      await ended(child);
      await rm(data, { recursive: true, force: true });
    }
  };
  try {
    const said = await hear(child, name, true);
    if (said.setupLink === null) throw new Error('the server printed no link to set it up');
    address = said.address;
    const { host } = new URL(said.address);
    const without = async (done: () => Promise<void>) => {
      await ended(child);
      await done();
      child = start(host);
      await hear(child, name, false);
    };
    const { setupLink } = said;
    const database = join(data, 'glovebox.db');
    return { address, setupLink, database, admin, without, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends every sandbox of a server: they would outlive it until their hard limit. */
async function endSandboxes(address: string): Promise<void> {
  const signedIn = await fetch(`${address}/api/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(KEEPER),
  });
  if (!signedIn.ok) throw new Error(`signing in to end sandboxes: ${await signedIn.text()}`);
  const cookie = signedIn.headers.getSetCookie().map((one) => one.split(';')[0]);
  const headers = { cookie: cookie.join('; ') };
  const all = `${address}/api/v1/admin/sandboxes`;
  const listed = (await (await fetch(all, { headers })).json()) as { items: { id: string }[] };
  for (const { id } of listed.items) {
    const done = await fetch(`${all}/${id}`, { method: 'DELETE', headers });
    if (!done.ok) throw new Error(`ending the sandbox ${id}: ${await done.text()}`);
  }
}

interface Said {
  address: string;
  /** Nothing where there is an administrator. */
  setupLink: string | null;
}

function hear(child: ChildProcess, name: string, isNew: boolean): Promise<Said> {
  return new Promise((resolve, reject) => {
    let said = '';
    const fail = (why: string) =>
      reject(new Error(`${why}; it said \`${said}\`; the log is output/${name}.log`));
    const timer = setTimeout(() => fail('the server did not start in time'), START_LIMIT_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code) => fail(`the server ended with ${code ?? 'a signal'}`));
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      said += part;
      const address = /Glovebox is at (\S+)/.exec(said)?.[1];
      const setupLink = /(\S+\/setup#token=\S+)\s/.exec(said)?.[1] ?? null;
      if (address && (setupLink !== null || !isNew)) {
        clearTimeout(timer);
        resolve({ address, setupLink });
      }
    });
  });
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}
