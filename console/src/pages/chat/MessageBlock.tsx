import { Button } from '@mantine/core';
import { memo } from 'react';
import { contentOf, type FileRef } from '../../api/files';
import type { SentFile } from '../../api/thread-events';
import type { Message } from '../../chat/view';
import { bytes } from '../../format/bytes';
import { typeName } from '../../format/fileType';
import { Ago } from '../../parts/Ago';
import { CodeBlock } from '../../parts/CodeBlock';
import { FileIcon } from '../../parts/FileIcon';
import { Icon } from '../../parts/Icon';
import { usePreview } from '../../parts/preview/usePreview';
import styles from './Thread.module.css';

/** What somebody sent. */
export const MessageBlock = memo(function MessageBlock({ message }: { message: Message }) {
  const isCode = message.code === 'code';
  return (
    <article
      className={`${styles.message ?? ''} ${isCode ? (styles.coded ?? '') : ''}`}
      aria-label={`Message of ${message.author.name}`}
    >
      <div className={styles.who}>
        <span>{message.author.name}</span>
        <Ago at={message.at} />
      </div>
      {isCode ? (
        <CodeBlock text={message.text} what="Python" />
      ) : (
        message.text !== '' && <div className={styles.words}>{message.text}</div>
      )}
      {message.files.length > 0 && (
        <ul className={styles.cards} aria-label="Attached files">
          {message.files.map((file) => (
            <li key={file.attachment}>
              <SentCard file={file} />
            </li>
          ))}
        </ul>
      )}
    </article>
  );
});

function SentCard({ file }: { file: SentFile }) {
  const [shown, show] = usePreview();
  const ref: FileRef = { kind: 'attachment', id: file.attachment };
  return (
    <div className={styles.card} data-shown={shown?.id === file.attachment ? true : undefined}>
      <FileIcon
        file={ref}
        name={file.name}
        mediaType={file.media_type}
        hasThumbnail={file.media_type.startsWith('image/')}
      />
      <div>
        <div className={styles.cardName}>{file.name}</div>
        <div className={styles.about}>
          {typeName(file.name, file.media_type)}, {bytes(file.bytes)}
          {file.uploaded_as && `, sent as ${file.uploaded_as}`}
        </div>
      </div>
      <div className={styles.cardTools}>
        <Button
          size="compact-sm"
          variant="default"
          aria-label={`Preview ${file.name}`}
          onClick={() => show(ref)}
        >
          Preview
        </Button>
        <Button
          component="a"
          size="compact-sm"
          variant="default"
          href={contentOf(ref)}
          download={file.name}
          aria-label={`Download ${file.name}`}
          leftSection={<Icon name="download" size={12} />}
        >
          Download
        </Button>
      </div>
    </div>
  );
}
