import { ActionIcon, Button, NativeSelect, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { Artifact } from '../../api/views';
import { contentOf, type FileRef, versionsQuery } from '../../api/files';
import { bytes } from '../../format/bytes';
import { typeName } from '../../format/fileType';
import { FailureNote } from '../FailureNote';
import { Icon } from '../Icon';
import styles from './PreviewPanel.module.css';
import { PreviewBody } from './PreviewBody';
import { RestoreVersion } from './RestoreVersion';
import { type FileFacts, useFileFacts } from './useFileFacts';

interface Props {
  file: FileRef;
  /** What is known of it already. */
  known?: FileFacts | undefined;
  /** Shows another version. */
  onShow: (file: FileRef) => void;
  onClose: () => void;
}

/** A file to look at, with what can be done with it. */
export function PreviewPanel({ file, known, onShow, onClose }: Props) {
  const facts = useFileFacts(file, known);
  const name = facts?.name ?? 'File';
  const heading = useRef<HTMLHeadingElement>(null);
  // Whoever opens it by the keyboard goes on from here.
  useEffect(() => heading.current?.focus(), [file.kind, file.id]);
  return (
    <section className={styles.panel} aria-label={`Preview of ${name}`}>
      <div className={styles.head}>
        <div className={styles.title}>
          <div>
            <Title order={2} ref={heading} tabIndex={-1}>
              {name}
            </Title>
            {facts && (
              <div className={styles.facts}>
                {typeName(facts.name, facts.mediaType)}, {bytes(facts.bytes)}
              </div>
            )}
          </div>
          <ActionIcon variant="default" aria-label="Close the preview" onClick={onClose}>
            <Icon name="bad" />
          </ActionIcon>
        </div>
        <div className={styles.tools}>
          {file.kind === 'artifact' && <Versions key={file.id} file={file} onShow={onShow} />}
          <Button
            component="a"
            size="xs"
            href={contentOf(file)}
            download={name}
            leftSection={<Icon name="download" size={12} />}
          >
            Download
          </Button>
        </div>
      </div>
      <PreviewBody key={`${file.kind} ${file.id}`} file={file} name={name} />
    </section>
  );
}

/** Which version is looked at, and the way back to an older one. */
function Versions({ file, onShow }: { file: FileRef; onShow: (file: FileRef) => void }) {
  const { data, error } = useQuery(versionsQuery(file.id));
  const [restoring, setRestoring] = useState<Artifact | null>(null);
  const versions = data?.items ?? [];
  const present = versions.find(({ id }) => id === file.id);
  const newest = Math.max(...versions.map(({ version }) => version));
  if (!present) return data ? null : <FailureNote error={error} />;
  return (
    <>
      <NativeSelect
        size="xs"
        aria-label="Version"
        value={file.id}
        data={versions
          .toSorted((a, b) => b.version - a.version)
          .map(({ id, version }) => ({
            value: id,
            label: `Version ${version}${version === newest ? ' (newest)' : ''}`,
          }))}
        onChange={(event) => onShow({ kind: 'artifact', id: event.currentTarget.value })}
      />
      {present.version !== newest && present.may_restore && (
        <Button size="xs" variant="default" onClick={() => setRestoring(present)}>
          Restore version {present.version}
        </Button>
      )}
      {restoring && (
        <RestoreVersion
          artifact={restoring}
          next={newest + 1}
          onDone={(made) => onShow({ kind: 'artifact', id: made.id })}
          onClose={() => setRestoring(null)}
        />
      )}
    </>
  );
}
