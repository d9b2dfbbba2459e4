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
  stop: () => Promise<void>;
}

const START_LIMIT_MS = 60_000;

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
  const child = spawn(
    program,
    [
      'serve',
      '--listen',
      '127.0.0.1:0',
      '--data',
      setting('GLOVEBOX_TEST_DATA'),
      '--server-data',
      data,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } },
  );
  child.stderr.pipe(createWriteStream(`output/${name}.log`));
  const admin = (...words: string[]): unknown => {
    const places = ['--data', setting('GLOVEBOX_TEST_DATA'), '--server-data', data, '--json'];
    return JSON.parse(execFileSync(program, ['admin', ...words, ...places], { encoding: 'utf8' }));
  };
  const stop = async () => {
    await ended(child);
    await rm(data, { recursive: true, force: true });
  };
  try {
    const said = await hear(child, name);
    return { ...said, database: join(data, 'glovebox.db'), admin, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function hear(child: ChildProcess, name: string): Promise<{ address: string; setupLink: string }> {
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
      const setupLink = /(\S+\/setup#token=\S+)\s/.exec(said)?.[1];
      if (address && setupLink) {
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
