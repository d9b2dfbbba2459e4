import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setting } from './server.js';

/** A model endpoint that plays what it was given. */
export interface Model {
  baseUrl: string;
  stop: () => Promise<void>;
}

interface Call {
  name: string;
  arguments: Record<string, unknown>;
}

/** A task that the assistant hands over, the code that it runs, and what is said in the end. */
export interface Task {
  /** What the person's message contains. */
  said: string;
  /** What is said before. */
  first: string;
  task: string;
  files: string[];
  steps: { plan: string; code: string }[];
  last: string;
}

export const KEY = 'sk-journey-0123456789';

const calls = (name: string, given: Record<string, unknown>): { calls: Call[] } => ({
  calls: [{ name, arguments: given }],
});

/**
 * A conversation of the main assistant and its sub-agent. The sub-agent is asked with the task as
 * what a person says, so the task has to contain the words too.
 */
function rulesOf({ said, first, task, files, steps, last }: Task): unknown[] {
  const running = steps.map((step, results) => ({
    when: { said, tool: 'run_python', results },
    then: calls('run_python', { ...step }),
  }));
  return [
    {
      when: { said, tool: 'code_execution', results: 0 },
      then: { text: first, ...calls('code_execution', { task: `${said}: ${task}`, files }) },
    },
    ...running,
    { when: { said, tool: 'run_python' }, then: { text: 'It is made.' } },
    { when: { said, tool: 'code_execution' }, then: { text: last, pause_ms: 5 } },
  ];
}

/** What the test of a model asks for. */
const TESTED = [
  { when: { tool: 'report' }, then: calls('report', { word: 'ready' }) },
  { then: { text: 'ready' } },
];

/** Starts an endpoint that plays these tasks. */
export async function startModel(tasks: readonly Task[]): Promise<Model> {
  const folder = await mkdtemp(join(tmpdir(), 'gbm-'));
  const script = join(folder, 'script.json');
  const rules = [...tasks.flatMap(rulesOf), ...TESTED];
  await writeFile(script, JSON.stringify({ models: ['scripted'], api_key: KEY, rules }));
  const program = join(setting('GLOVEBOX_PROGRAMS'), 'glovebox-scripted-model');
  const child = spawn(program, ['--script', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const stop = async () => {
    await ended(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    return { baseUrl: await firstLine(child), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the model ended with ${code ?? 'a signal'}`)));
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      said += part;
      const [line, ...rest] = said.split('\n');
      if (line && rest.length > 0) resolve(line.trim());
    });
  });
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGINT');
  });
}
