import type { KnowledgeFile } from '../../api/views';
import { useChange } from '../../api/change';
import { deleteKnowledge, knowledgeKey } from '../../api/files';
import { Confirm } from '../../parts/Confirm';

interface Props {
  workspace: string;
  file: KnowledgeFile;
  onClose: () => void;
}

export function DeleteKnowledge({ workspace, file, onClose }: Props) {
  const remove = useChange(() => deleteKnowledge(file.id), [knowledgeKey(workspace)]);
  return (
    <Confirm
      title={`Delete ${file.name}?`}
      action={`Delete ${file.name}`}
      change={remove}
      onClose={onClose}
    >
      No thread can open it any more, and nobody can bring it back. Copies that are in sandboxes
      stay until those end; files that were made from it stay.
    </Confirm>
  );
}
