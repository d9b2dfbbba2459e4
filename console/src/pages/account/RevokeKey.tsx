import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { keysQuery } from '../../api/queries';
import type { ApiKey } from '../../api/views';
import { Confirm } from '../../parts/Confirm';

interface Props {
  workspace: string;
  apiKey: ApiKey;
  onClose: () => void;
}

export function RevokeKey({ workspace, apiKey, onClose }: Props) {
  const revoke = useChange(
    () =>
      answer(
        api.DELETE('/api/v1/workspaces/{workspace}/api-keys/{key}', {
          params: { path: { workspace, key: apiKey.id } },
        }),
      ),
    [keysQuery(workspace).queryKey],
  );
  return (
    <Confirm
      title={`Revoke the key ${apiKey.name}?`}
      action={`Revoke ${apiKey.name}`}
      change={revoke}
      onClose={onClose}
    >
      Programs that use it are refused from now on. It cannot be brought back; sandboxes and
      artifacts stay.
    </Confirm>
  );
}
