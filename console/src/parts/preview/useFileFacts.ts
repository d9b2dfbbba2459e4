import { useQuery } from '@tanstack/react-query';
import { artifactQuery, attachmentQuery, type FileRef } from '../../api/files';

export interface FileFacts {
  name: string;
  bytes: number;
  mediaType: string;
}

/** What a file is called and how large it is; a knowledge file is known by the list it is in. */
export function useFileFacts(file: FileRef, known: FileFacts | undefined): FileFacts | undefined {
  const artifact = useQuery({
    ...artifactQuery(file.id),
    enabled: file.kind === 'artifact' && known === undefined,
  });
  const attachment = useQuery({
    ...attachmentQuery(file.id),
    enabled: file.kind === 'attachment' && known === undefined,
  });
  const found = artifact.data ?? attachment.data;
  if (known !== undefined || found === undefined) return known;
  return { name: found.name, bytes: found.bytes, mediaType: found.media_type };
}
