import { queryOptions } from '@tanstack/react-query';
import { answer, api } from './client';

/** How often pages with live numbers ask again, in milliseconds. */
const LIVE = 3000;

/** How many rows a list asks for at once. */
const ROWS = 200;

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => answer(api.GET('/api/v1/session')),
  staleTime: 60_000,
});

export const setupQuery = queryOptions({
  queryKey: ['setup'],
  queryFn: () => answer(api.GET('/api/v1/setup')),
});

export const codeExecutionQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'code-execution'],
    queryFn: () =>
      answer(
        api.GET('/api/v1/workspaces/{workspace}/code-execution', {
          params: { path: { workspace } },
        }),
      ),
    refetchInterval: LIVE,
  });

export const membersQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'members'],
    queryFn: () =>
      answer(
        api.GET('/api/v1/workspaces/{workspace}/members', { params: { path: { workspace } } }),
      ),
  });

export const keysQuery = (workspace: string) =>
  queryOptions({
    queryKey: ['workspace', workspace, 'keys'],
    queryFn: () =>
      answer(
        api.GET('/api/v1/workspaces/{workspace}/api-keys', { params: { path: { workspace } } }),
      ),
  });

export const signInsQuery = queryOptions({
  queryKey: ['sign-ins'],
  queryFn: () => answer(api.GET('/api/v1/account/sessions')),
});

export const deploymentQuery = queryOptions({
  queryKey: ['deployment'],
  queryFn: () => answer(api.GET('/api/v1/admin/sandbox')),
});

export const profilesQuery = queryOptions({
  queryKey: ['profiles'],
  queryFn: () => answer(api.GET('/api/v1/admin/profiles')),
});

export const profileQuery = (profile: string) =>
  queryOptions({
    queryKey: ['profiles', profile],
    queryFn: () =>
      answer(api.GET('/api/v1/admin/profiles/{profile}', { params: { path: { profile } } })),
  });

export const workspacesQuery = (cursor?: string) =>
  queryOptions({
    queryKey: ['workspaces', cursor ?? 'first'],
    queryFn: () =>
      answer(api.GET('/api/v1/admin/workspaces', { params: { query: { cursor, limit: ROWS } } })),
  });

export const usersQuery = (cursor?: string) =>
  queryOptions({
    queryKey: ['users', cursor ?? 'first'],
    queryFn: () =>
      answer(api.GET('/api/v1/admin/users', { params: { query: { cursor, limit: ROWS } } })),
  });

export const sandboxesQuery = queryOptions({
  queryKey: ['sandboxes'],
  queryFn: () => answer(api.GET('/api/v1/admin/sandboxes')),
  refetchInterval: LIVE,
});

export const ownSandboxesKey = (workspace: string) => ['workspace', workspace, 'sandboxes'];

export const ownSandboxesQuery = (workspace_id: string, cursor?: string) =>
  queryOptions({
    queryKey: [...ownSandboxesKey(workspace_id), cursor ?? 'first'],
    // Asked for again and again, so it has the few rows that the API gives unasked.
    queryFn: () =>
      answer(api.GET('/api/v1/sandboxes', { params: { query: { workspace_id, cursor } } })),
    refetchInterval: LIVE,
  });

export interface AuditFilter {
  action?: string;
  actor?: string;
  since?: string;
  until?: string;
  cursor?: string;
}

export const auditQuery = (query: AuditFilter) =>
  queryOptions({
    queryKey: ['audit', query],
    queryFn: () => answer(api.GET('/api/v1/admin/audit', { params: { query } })),
  });
