import { answer, api } from './client';
import { useChange } from './change';
import { deploymentQuery, profilesQuery } from './queries';
import type { CheckRecord, ProfileDetail } from './views';

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** One thing that a test looked at. */
export interface Check {
  id: string;
  /** `pass`, `warn` or `fail`. */
  status: string;
  message: string;
  fix: string;
}

/** One thing that a throwaway sandbox tried. */
export interface Attempt {
  id: string;
  target: string;
  /** `BLOCKED` or `OPEN`. */
  verdict: string;
  expected: string;
  how: string;
}

/** The documents of checks belong to the gateway; the API hands them on as they are. */
export const checksOf = (record: CheckRecord): Check[] =>
  list(record.report.checks)
    .filter(isRecord)
    .map((check) => ({
      id: text(check.id),
      status: text(check.status).toLowerCase(),
      message: text(check.message),
      fix: text(check.fix),
    }));

function reachOf(reach: unknown): string {
  if (!isRecord(reach)) return '';
  switch (reach.by) {
    case 'tcp': {
      const address = text(reach.address);
      const host = address.includes(':') ? `[${address}]` : address;
      return `TCP ${host}:${String(reach.port)}`;
    }
    case 'dns':
      return `DNS ${text(reach.name)}`;
    case 'abstract_socket':
      return `abstract socket ${text(reach.name)}`;
    default:
      return 'a socket of its own';
  }
}

/** What the canary tried; the attempt that has to work comes first. */
export const attemptsOf = (record: CheckRecord): Attempt[] =>
  list(record.report.results)
    .flatMap((pair) => {
      const [target, result] = list(pair);
      if (!isRecord(target) || !isRecord(result)) return [];
      return [
        {
          id: text(target.id),
          target: reachOf(target.reach),
          verdict: text(result.verdict),
          expected: text(target.expected),
          how: text(result.how),
        },
      ];
    })
    .toSorted((a, b) => Number(b.expected === 'OPEN') - Number(a.expected === 'OPEN'));

/** Why there is no report at all. */
export const errorOf = (record: CheckRecord): string => text(record.report.error);

export type ProfileStep = 'test' | 'canary' | 'acknowledge' | 'activate' | 'disable';

/** One step with a profile; `onTaken` is told what it has become. */
export function useProfileStep(
  profile: string,
  step: ProfileStep,
  onTaken?: (detail: ProfileDetail) => void,
) {
  const params = { path: { profile } };
  const take = () => {
    switch (step) {
      case 'test':
        return api.POST('/api/v1/admin/profiles/{profile}/test', { params });
      case 'canary':
        return api.POST('/api/v1/admin/profiles/{profile}/canary', { params });
      case 'activate':
        return api.POST('/api/v1/admin/profiles/{profile}/activate', { params });
      case 'disable':
        return api.POST('/api/v1/admin/profiles/{profile}/disable', { params });
      case 'acknowledge':
        return api.PUT('/api/v1/admin/profiles/{profile}/acknowledgements/{name}', {
          params: { path: { profile, name: 'shared_kernel' } },
        });
    }
  };
  return useChange(async () => {
    const taken = await answer<ProfileDetail>(take());
    onTaken?.(taken);
  }, [profilesQuery.queryKey, deploymentQuery.queryKey]);
}
