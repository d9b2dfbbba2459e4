import type { CodeExecution, Denied, Quotas } from './views';

/**
 * What the gate refuses by. Of the quotas three keep no code from running: files over their limits
 * stay in the sandbox or are not taken, and there are no jobs yet.
 */
type DenialName =
  | 'deployment'
  | 'profile'
  | 'workspace'
  | 'role'
  | `quota:${Exclude<
      keyof Quotas,
      'max_artifact_bytes_per_day' | 'max_uploaded_bytes' | 'max_job_seconds'
    >}`;

type Meaning = Omit<Denied, 'name'>;

/**
 * What each denial means and what to do. Whoever is refused is told so by the API, with the cause
 * and the numbers. The list of the last denials keeps names alone: what stands here holds for
 * every cause of a name, in the words of the gate.
 */
const MEANINGS: Record<DenialName, Meaning> = {
  deployment: {
    message: 'no code may run in the whole installation',
    fix: 'a system admin sees the reason at Admin → System → Sandbox',
  },
  profile: {
    message: 'the runtime profile of the workspace is missing or not active',
    fix: 'ask a system admin to activate it, or to choose another one',
  },
  workspace: {
    message: 'code execution is off in the workspace',
    fix: 'ask a system admin to switch it on at Admin → Workspaces',
  },
  role: {
    message: 'the role or the key may not run code',
    fix: 'ask an admin of the workspace for the role editor, or use a key with the scope code_execution:run',
  },
  'quota:max_resource_class': {
    message: 'a larger sandbox was asked for than the workspace may have',
    fix: 'ask for a smaller class, or a system admin for a larger quota',
  },
  'quota:max_concurrent': {
    message: 'the workspace had all the sandboxes that it may have at once',
    fix: 'end one that is not needed, or wait until one ends; a system admin can raise the quota',
  },
  'quota:max_jobs_per_hour': {
    message: 'the workspace had started all the sandboxes that it may start in an hour',
    fix: 'go on in a sandbox that is there, or wait; a system admin can raise the quota',
  },
};

const isKnown = (name: string): name is DenialName => Object.hasOwn(MEANINGS, name);

/** What a kept denial means; nothing where a newer server has one that is not known here. */
export const meaningOf = (name: string): Meaning | null => (isKnown(name) ? MEANINGS[name] : null);

/** What keeps everybody in a workspace from running code now: the first level that does not hold. */
export function barrierOf(view: CodeExecution): Denied | null {
  const { deployment_denial, profile_name, profile_state, workspace } = view;
  if (deployment_denial) return deployment_denial;
  if (profile_state !== 'active') {
    const message = profile_name
      ? `the runtime profile ${profile_name} of this workspace is ${profile_state ?? 'not known'}`
      : 'this workspace has no runtime profile';
    return { name: 'profile', message, fix: MEANINGS.profile.fix };
  }
  if (workspace.code_execution) return null;
  const message = `code execution is off in ${workspace.name}`;
  return { name: 'workspace', message, fix: MEANINGS.workspace.fix };
}
