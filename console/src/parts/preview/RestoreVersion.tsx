import type { Artifact } from '../../api/views';
import { useChange } from '../../api/change';
import { restoreArtifact } from '../../api/files';
import { Confirm } from '../Confirm';

interface Props {
  artifact: Artifact;
  /** The number that the restored version will have. */
  next: number;
  onDone: (made: Artifact) => void;
  onClose: () => void;
}

export function RestoreVersion({ artifact, next, onDone, onClose }: Props) {
  const restore = useChange(
    () =>
      restoreArtifact(artifact.id).then((made) => {
        onDone(made);
        return made;
      }),
    [['artifact'], ['workspace']],
  );
  const { name, version } = artifact;
  return (
    <Confirm
      title={`Restore version ${version} of ${name}?`}
      action={`Restore version ${version}`}
      change={restore}
      onClose={onClose}
    >
      Its content becomes version {next}, the newest one. All versions stay. The sandbox gets it
      with the next run of code, in place of the file of this name that it has.
    </Confirm>
  );
}
