import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type FileRef, partOf, previewQuery } from '../api/files';
import { ending, hasPicture } from '../format/fileType';
import styles from './FileIcon.module.css';

interface Props {
  file: FileRef;
  name: string;
  mediaType: string;
  /** Whether its first page is to be made for it; else the type alone is shown. */
  hasThumbnail?: boolean;
}

/** The type of a file, or its first page made small; its name always stands beside it. */
export function FileIcon({ file, name, mediaType, hasThumbnail = false }: Props) {
  const isWanted = hasThumbnail && hasPicture(name, mediaType);
  const { data: preview } = useQuery({ ...previewQuery(file), enabled: isWanted });
  const [isBroken, setBroken] = useState(false);
  const source =
    preview?.state !== 'ready' || isBroken
      ? null
      : preview.pages && preview.pages.length > 0
        ? partOf(preview.id, 'thumbnails/1')
        : preview.image
          ? partOf(preview.id, 'image')
          : null;
  return (
    <span className={styles.icon} aria-hidden="true">
      {source === null ? (
        ending(name).toUpperCase() || 'FILE'
      ) : (
        <img className={styles.picture} src={source} alt="" onError={() => setBroken(true)} />
      )}
    </span>
  );
}
