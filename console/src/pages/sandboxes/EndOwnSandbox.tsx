import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { codeExecutionQuery, ownSandboxesKey } from '../../api/queries';
import type { Sandbox } from '../../api/views';
import { EndSandbox } from '../../parts/EndSandbox';

interface Props {
  sandbox: Sandbox;
  onClose: () => void;
}

export function EndOwnSandbox({ sandbox, onClose }: Props) {
  const workspace = sandbox.workspace_id;
  const end = useChange(
    () =>
      answer(
        api.DELETE('/api/v1/sandboxes/{sandbox}', { params: { path: { sandbox: sandbox.id } } }),
      ),
    [ownSandboxesKey(workspace), codeExecutionQuery(workspace).queryKey],
  );
  return (
    <EndSandbox
      sandbox={sandbox}
      title={sandbox.user_id ? 'End your sandbox?' : 'End the sandbox of a service?'}
      change={end}
      onClose={onClose}
    />
  );
}
