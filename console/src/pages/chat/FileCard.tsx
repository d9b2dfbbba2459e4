import { Button } from '@mantine/core';
import { contentOf, type FileRef } from '../../api/files';
import type { SavedFile } from '../../chat/view';
import { bytes } from '../../format/bytes';
import { typeName } from '../../format/fileType';
import { FileIcon } from '../../parts/FileIcon';
import { Icon } from '../../parts/Icon';
import { usePreview } from '../../parts/preview/usePreview';
import styles from './Thread.module.css';

/** Files that came out of a reply. */
export function FileCards({ files }: { files: readonly SavedFile[] }) {
  if (files.length === 0) return null;
  return (
    <ul className={styles.cards} aria-label="Files">
      {files.map((file) => (
        <li key={file.artifact}>
          <FileCard file={file} />
        </li>
      ))}
    </ul>
  );
}

function FileCard({ file }: { file: SavedFile }) {
  const [shown, show] = usePreview();
  const { artifact, name, version, mediaType } = file;
  const ref: FileRef = { kind: 'artifact', id: artifact };
  return (
    <div className={styles.card} data-shown={shown?.id === artifact ? true : undefined}>
      <FileIcon file={ref} name={name} mediaType={mediaType} hasThumbnail />
      <div>
        <div className={styles.cardName}>{name}</div>
        <div className={styles.about}>
          {typeName(name, mediaType)}, {bytes(file.bytes)}{' '}
          <span className={styles.badge}>version {version}</span>
        </div>
      </div>
      <div className={styles.cardTools}>
        <Button size="compact-sm" aria-label={`Preview ${name}`} onClick={() => show(ref)}>
          Preview
        </Button>
        <Button
          component="a"
          size="compact-sm"
          variant="default"
          href={contentOf(ref)}
          download={name}
          aria-label={`Download ${name}`}
          leftSection={<Icon name="download" size={12} />}
        >
          Download
        </Button>
      </div>
    </div>
  );
}
