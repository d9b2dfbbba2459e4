import { queryOptions } from '@tanstack/react-query';
import {
  type Artifact,
  type Attachment,
  call,
  type KnowledgeFile,
  type Page,
  type Preview,
  type Sheet,
} from './chat';

/** A file that can be looked at, wherever it comes from. */
export interface FileRef {
  kind: FileKind;
  id: string;
}

export type FileKind = 'artifact' | 'attachment' | 'knowledge';

const PATHS: Record<FileKind, string> = {
  artifact: 'artifacts',
  attachment: 'attachments',
  knowledge: 'knowledge',
};

const pathOf = ({ kind, id }: FileRef) => `/${PATHS[kind]}/${encodeURIComponent(id)}`;

/** Where the bytes of a file are, to be saved. */
export const contentOf = (file: FileRef) => `/api/v1${pathOf(file)}/content`;

const ROWS = 100;

export const artifactsKey = (workspace: string) => ['workspace', workspace, 'artifacts'];

export const artifactsQuery = (workspace_id: string, cursor?: string) =>
  queryOptions({
    queryKey: [...artifactsKey(workspace_id), cursor ?? 'first'],
    queryFn: () =>
      call<Page<Artifact>>('GET', '/artifacts', {
        query: { workspace_id, newest: true, cursor, limit: ROWS },
      }),
  });

export const artifactQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifact', id],
    queryFn: () => call<Artifact>('GET', pathOf({ kind: 'artifact', id })),
  });

export const attachmentQuery = (id: string) =>
  queryOptions({
    queryKey: ['attachment', id],
    queryFn: () => call<Attachment>('GET', pathOf({ kind: 'attachment', id })),
  });

/** All versions of the file that an artifact is one of. */
export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifact', id, 'versions'],
    queryFn: () => call<Page<Artifact>>('GET', `/artifacts/${encodeURIComponent(id)}/versions`),
  });

export const restoreArtifact = (id: string) =>
  call<Artifact>('POST', `/artifacts/${encodeURIComponent(id)}/restore`);

export const deleteAttachment = (id: string) =>
  call<null>('DELETE', pathOf({ kind: 'attachment', id }));

export const knowledgeKey = (workspace: string) => ['workspace', workspace, 'knowledge'];

export const knowledgeQuery = (workspace_id: string, cursor?: string) =>
  queryOptions({
    queryKey: [...knowledgeKey(workspace_id), cursor ?? 'first'],
    queryFn: () =>
      call<Page<KnowledgeFile>>('GET', '/knowledge', { query: { workspace_id, cursor } }),
  });

export const deleteKnowledge = (id: string) =>
  call<null>('DELETE', pathOf({ kind: 'knowledge', id }));

/** How often it is asked how far a preview is, in milliseconds. */
const MAKING = 1000;

const isComing = (preview: Preview | undefined) =>
  preview?.state === 'waiting' || preview?.state === 'making';

/** The preview of a file. To ask for it has it made. */
export const previewQuery = (file: FileRef) =>
  queryOptions({
    queryKey: ['preview', file.kind, file.id],
    queryFn: () => call<Preview>('GET', `${pathOf(file)}/preview`),
    refetchInterval: ({ state }) => (isComing(state.data) ? MAKING : false),
    // Its bytes never change, and one that is made stays.
    staleTime: ({ state }) => (state.data?.state === 'ready' ? Infinity : 0),
  });

type Part = 'image' | 'html' | `pages/${number}` | `thumbnails/${number}`;

/** Where a part of a preview is that the browser shows by itself. */
export const partOf = (preview: string, part: Part) => `/api/v1/previews/${preview}/${part}`;

export const sheetQuery = (preview: string, number: number) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'sheet', number],
    queryFn: () => call<Sheet>('GET', `/previews/${preview}/sheets/${number}`),
    staleTime: Infinity,
  });

export const textQuery = (preview: string) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'text'],
    queryFn: () => call<string>('GET', `/previews/${preview}/text`),
    staleTime: Infinity,
  });

export const markdownQuery = (preview: string) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'markdown'],
    queryFn: () => call<{ html: string }>('GET', `/previews/${preview}/markdown`),
    staleTime: Infinity,
  });
