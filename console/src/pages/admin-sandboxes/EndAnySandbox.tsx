import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { sandboxesQuery } from '../../api/queries';
import type { LiveSandbox } from '../../api/views';
import { EndSandbox } from '../../parts/EndSandbox';
import { whose } from './whose';

interface Props {
  sandbox: LiveSandbox;
  onClose: () => void;
}

export function EndAnySandbox({ sandbox, onClose }: Props) {
  const end = useChange(
    () =>
      answer(
        api.DELETE('/api/v1/admin/sandboxes/{sandbox}', {
          params: { path: { sandbox: sandbox.id } },
        }),
      ),
    [sandboxesQuery.queryKey],
  );
  return (
    <EndSandbox
      sandbox={sandbox}
      title={`End the sandbox of ${whose(sandbox)}?`}
      change={end}
      onClose={onClose}
    >
      {sandbox.purpose === 'preview' &&
        'The preview that is made in it is begun anew in another one, a few times. '}
      It is a sandbox of {sandbox.workspace_name}:{' '}
    </EndSandbox>
  );
}
