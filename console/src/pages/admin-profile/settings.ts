import { Failure } from '../../api/failure';
import type { ProfileDetail } from '../../api/views';
import { NO_JOBS_YET } from '../../parts/jobs';
import { sentence } from '../../format/sentence';

const MIB = 1024 * 1024;

export type Settings = ProfileDetail['profile']['settings'];

/** The names of those settings that are numbers. */
type NumberKey = {
  [Key in keyof Settings]: Settings[Key] extends number ? Key : never;
}[keyof Settings];

export interface NumberSetting {
  key: NumberKey;
  label: string;
  unit: string;
  /** How many of the API's units one of ours is. */
  factor: number;
  min: number;
  max: number;
  help: string;
}

const seconds = (key: NumberKey, label: string, min: number, max: number, help: string) => ({
  key,
  label,
  unit: 's',
  factor: 1,
  min,
  max,
  help,
});

const mebibytes = (key: NumberKey, label: string, help: string) => ({
  key,
  label,
  unit: 'MiB',
  factor: MIB,
  min: 1,
  max: 16_384,
  help,
});

const count = (
  key: NumberKey,
  label: string,
  unit: string,
  min: number,
  max: number,
  help: string,
) => ({
  key,
  label,
  unit,
  factor: 1,
  min,
  max,
  help,
});

/** Every setting that is a number, with what the server takes for it. */
export const NUMBERS: readonly NumberSetting[] = [
  seconds(
    'idle_seconds',
    'Idle limit',
    10,
    86_400,
    'Without use for so long, processes end; files stay.',
  ),
  seconds('hard_seconds', 'Hard limit', 60, 604_800, 'A sandbox ends after it, used or not.'),
  seconds(
    'start_timeout_seconds',
    'Start timeout',
    1,
    600,
    'How long a sandbox may take to start.',
  ),
  seconds('execution_seconds', 'Execution limit', 1, 600, 'For one execution that asks for none.'),
  seconds('max_execution_seconds', 'Longest execution', 1, 600, 'The most that one may ask for.'),
  seconds('max_job_seconds', 'Longest job', 1, 604_800, NO_JOBS_YET),
  count(
    'workspace_disk_mb',
    'Workspace disk',
    'MiB',
    64,
    16_384,
    'The size of the workspace folder.',
  ),
  count('warm_pool', 'Warm pool', 'sandboxes', 0, 100, 'Kept ready and unused; 0 turns it off.'),
  count('max_artifacts', 'Files per collection', 'files', 1, 1000, 'What is over it stays behind.'),
  mebibytes('max_artifact_bytes', 'Size of a collection', 'All files together.'),
  count('max_output_characters', 'Output kept', 'characters', 0, 10_000_000, 'Of one execution.'),
  mebibytes('max_input_file_bytes', 'Largest input file', 'For one file.'),
  mebibytes('max_input_total_bytes', 'All input files', 'For one sandbox.'),
];

/** How kernels come into being, and what that means for who uses them. */
export const STARTS = [
  {
    value: 'template',
    label: 'Copy of a template',
    help:
      'The usual libraries are loaded already: code runs at once. Sandboxes of one organization ' +
      'share the memory that they are copied from, and no others do.',
  },
  {
    value: 'fresh',
    label: 'Program start of its own',
    help: 'Nothing is shared between sandboxes. The first code waits until Python has started.',
  },
] as const;

export const ARTIFACT_TYPES: readonly string[] = [
  'pptx',
  'xlsx',
  'docx',
  'pdf',
  'csv',
  'tsv',
  'json',
  'txt',
  'md',
  'html',
  'png',
  'jpg',
  'jpeg',
  'gif',
  'webp',
  'svg',
];

const LABELS = new Map<string, string>(NUMBERS.map(({ key, label }) => [key, label]));

/** What the server says against one setting, in the words of the form; nothing against others. */
export function complaint(error: unknown, key: string): string | null {
  if (!(error instanceof Failure) || !error.message.startsWith(`${key} `)) return null;
  return sentence(error.message.replaceAll(/\w+/g, (word) => LABELS.get(word) ?? word));
}

/** A number of the settings in the unit of its field. */
export function numberOf(settings: Settings, field: NumberSetting): number {
  return Math.round(settings[field.key] / field.factor);
}
