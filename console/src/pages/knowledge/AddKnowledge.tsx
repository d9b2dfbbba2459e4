import { ActionIcon, Button, FileButton, Progress } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { KnowledgeFile, UploadLimits } from '../../api/views';
import { asFailure } from '../../api/failure';
import { knowledgeKey } from '../../api/files';
import { randomId } from '../../api/random';
import { isCancelled, upload, type Upload } from '../../api/upload';
import { bytes } from '../../format/bytes';
import { Icon } from '../../parts/Icon';
import { sentence } from '../../format/sentence';
import styles from './Knowledge.module.css';

interface Props {
  workspace: string;
  limits: UploadLimits;
}

interface Sending {
  key: string;
  name: string;
  bytes: number;
  sent: number;
  why: string | null;
}

/** Adds files one beside the other, each with how far it is. */
export function AddKnowledge({ workspace, limits }: Props) {
  const queries = useQueryClient();
  const [sending, setSending] = useState<readonly Sending[]>([]);
  const uploads = useRef(new Map<string, Upload<KnowledgeFile>>());
  useEffect(() => {
    const present = uploads.current;
    return () => present.forEach((one) => one.cancel());
  }, []);
  const change = (key: string, to: Partial<Sending>) =>
    setSending((all) => all.map((one) => (one.key === key ? { ...one, ...to } : one)));
  const remove = (key: string) => {
    uploads.current.get(key)?.cancel();
    setSending((all) => all.filter((one) => one.key !== key));
  };
  const send = async (key: string, file: File) => {
    const going = upload<KnowledgeFile>('/knowledge', workspace, file, (sent) =>
      change(key, { sent }),
    );
    uploads.current.set(key, going);
    try {
      await going.done;
      setSending((all) => all.filter((one) => one.key !== key));
    } catch (error) {
      if (isCancelled(error)) return;
      const { message, fix } = asFailure(error);
      change(key, { why: `${sentence(message)} ${sentence(fix)}` });
    } finally {
      uploads.current.delete(key);
      void queries.invalidateQueries({ queryKey: knowledgeKey(workspace) });
    }
  };
  const add = (files: File[]) => {
    for (const file of files) {
      const isLarge = file.size > limits.max_file_bytes;
      const why = isLarge
        ? `It has ${bytes(file.size)}, and a file may have ${bytes(limits.max_file_bytes)}.`
        : null;
      const key = randomId();
      setSending((all) => [...all, { key, name: file.name, bytes: file.size, sent: 0, why }]);
      if (!isLarge) void send(key, file);
    }
  };
  return (
    <>
      <div>
        <FileButton multiple onChange={add}>
          {(props) => (
            <Button {...props} leftSection={<Icon name="add" size={12} />}>
              Choose files
            </Button>
          )}
        </FileButton>{' '}
        <span className={styles.help}>
          Up to {bytes(limits.max_file_bytes)} each. A name can be there once.
        </span>
      </div>
      {sending.length > 0 && (
        <ul className={styles.sending} aria-label="Files on their way">
          {sending.map((one) => (
            <li key={one.key} className={styles.one}>
              <span>
                {one.name}{' '}
                <span className={styles.help}>
                  {one.why === null && `${bytes(Math.min(one.sent, one.bytes))} of `}
                  {bytes(one.bytes)}
                </span>
              </span>
              <ActionIcon
                variant="subtle"
                size="sm"
                aria-label={one.why === null ? `Cancel ${one.name}` : `Take ${one.name} away`}
                onClick={() => remove(one.key)}
              >
                <Icon name="bad" size={12} />
              </ActionIcon>
              {one.why === null ? (
                <Progress
                  className={styles.wide ?? ''}
                  size="xs"
                  value={one.bytes === 0 ? 0 : (one.sent / one.bytes) * 100}
                  aria-label={`Upload of ${one.name}`}
                />
              ) : (
                <span className={styles.why} role="alert">
                  {one.why}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
