import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { codeExecutionQuery, sessionQuery } from '../../api/queries';
import type { Quotas } from '../../api/views';

interface Wish {
  version: number;
  name?: string;
  code_execution?: boolean;
  quotas?: Quotas;
}

export const useWorkspaceChange = (workspace: string) =>
  useChange(
    (body: Wish) =>
      answer(
        api.PATCH('/api/v1/admin/workspaces/{workspace}', {
          params: { path: { workspace } },
          body,
        }),
      ),
    [codeExecutionQuery(workspace).queryKey, ['workspaces'], sessionQuery.queryKey],
  );
