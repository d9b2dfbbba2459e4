import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { deleteModel, modelsQuery } from '../../api/models';
import { Confirm } from '../../parts/Confirm';

interface Props {
  model: Model;
  onClose: () => void;
}

export function DeleteModel({ model, onClose }: Props) {
  const remove = useChange(() => deleteModel(model.id), [modelsQuery.queryKey, ['workspace']]);
  return (
    <Confirm
      title={`Delete ${model.name}?`}
      action={`Delete ${model.name}`}
      change={remove}
      onClose={onClose}
    >
      Its settings and its key are gone. Threads stay as they are; what is asked from now on is
      answered by the default model, and by none where there is none.
    </Confirm>
  );
}
