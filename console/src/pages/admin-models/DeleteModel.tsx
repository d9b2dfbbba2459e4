import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { deleteModel, modelsQuery } from '../../api/models';
import { Confirm } from '../../parts/Confirm';
import { Notice } from '../../parts/Notice';

interface Props {
  model: Model;
  /** Whether there are others, of which one has to be the default. */
  hasOthers: boolean;
  onClose: () => void;
}

export function DeleteModel({ model, hasOthers, onClose }: Props) {
  const remove = useChange(() => deleteModel(model.id), [modelsQuery.queryKey, ['workspace']]);
  const isNeeded = model.is_default && hasOthers;
  return (
    <Confirm
      title={`Delete ${model.name}?`}
      action={`Delete ${model.name}`}
      change={remove}
      isDisabled={isNeeded}
      onClose={onClose}
    >
      {isNeeded ? (
        <Notice tone="warn" title={`${model.name} is the default`}>
          It answers in every workspace. Make another model the default first.
        </Notice>
      ) : model.is_default ? (
        <>
          Its settings and its key are gone. Threads stay as they are; from now on nobody answers
          words in chat, and people run the Python that they type.
        </>
      ) : (
        <>
          Its settings and its key are gone. Threads stay as they are: the default model goes on
          answering.
        </>
      )}
    </Confirm>
  );
}
