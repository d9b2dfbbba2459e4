import { queryOptions } from '@tanstack/react-query';
import { answer, api } from './client';
import { Failure } from './failure';
import type { Preview } from './views';

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
      answer(
        api.GET('/api/v1/artifacts', {
          params: { query: { workspace_id, newest: true, cursor, limit: ROWS } },
        }),
      ),
  });

export const artifactQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifact', id],
    queryFn: () =>
      answer(api.GET('/api/v1/artifacts/{artifact}', { params: { path: { artifact: id } } })),
  });

export const attachmentQuery = (id: string) =>
  queryOptions({
    queryKey: ['attachment', id],
    queryFn: () =>
      answer(api.GET('/api/v1/attachments/{attachment}', { params: { path: { attachment: id } } })),
  });

/** All versions of the file that an artifact is one of. */
export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['artifact', id, 'versions'],
    queryFn: () =>
      answer(
        api.GET('/api/v1/artifacts/{artifact}/versions', {
          params: { path: { artifact: id }, query: { limit: ROWS } },
        }),
      ),
  });

export const restoreArtifact = (id: string) =>
  answer(api.POST('/api/v1/artifacts/{artifact}/restore', { params: { path: { artifact: id } } }));

export const deleteAttachment = (id: string) =>
  answer(api.DELETE('/api/v1/attachments/{attachment}', { params: { path: { attachment: id } } }));

export const knowledgeKey = (workspace: string) => ['workspace', workspace, 'knowledge'];

export const knowledgeQuery = (workspace_id: string, cursor?: string) =>
  queryOptions({
    queryKey: [...knowledgeKey(workspace_id), cursor ?? 'first'],
    queryFn: () =>
      answer(api.GET('/api/v1/knowledge', { params: { query: { workspace_id, cursor } } })),
  });

export const deleteKnowledge = (id: string) =>
  answer(api.DELETE('/api/v1/knowledge/{file}', { params: { path: { file: id } } }));

/** How often it is asked how far a preview is, in milliseconds. */
const MAKING = 1000;

/** To ask again gives the same, as it does not where only the connection is lost or the server busy. */
const isRefused = (error: unknown) =>
  error instanceof Failure && [401, 403, 404].includes(error.status);

const isComing = (preview: Preview | undefined) =>
  preview?.state === 'waiting' || preview?.state === 'making';

function askFor({ kind, id }: FileRef) {
  switch (kind) {
    case 'artifact':
      return api.GET('/api/v1/artifacts/{artifact}/preview', {
        params: { path: { artifact: id } },
      });
    case 'attachment':
      return api.GET('/api/v1/attachments/{attachment}/preview', {
        params: { path: { attachment: id } },
      });
    case 'knowledge':
      return api.GET('/api/v1/knowledge/{file}/preview', {
        params: { path: { file: id } },
      });
  }
}

/** The preview of a file. To ask for it has it made. */
export const previewQuery = (file: FileRef) =>
  queryOptions({
    queryKey: ['preview', file.kind, file.id],
    queryFn: () => answer(askFor(file)),
    refetchInterval: ({ state }) =>
      isComing(state.data) && !isRefused(state.error) ? MAKING : false,
    // Its bytes never change, and one that is made stays.
    staleTime: ({ state }) => (state.data?.state === 'ready' ? Infinity : 0),
  });

type Part = 'image' | 'html' | `pages/${number}` | `thumbnails/${number}`;

/** Where a part of a preview is that the browser shows by itself. */
export const partOf = (preview: string, part: Part) => `/api/v1/previews/${preview}/${part}`;

export const sheetQuery = (preview: string, number: number) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'sheet', number],
    queryFn: () =>
      answer(
        api.GET('/api/v1/previews/{preview}/sheets/{number}', {
          params: { path: { preview, number } },
        }),
      ),
    staleTime: Infinity,
  });

export const textQuery = (preview: string) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'text'],
    queryFn: () =>
      answer(
        api.GET('/api/v1/previews/{preview}/text', {
          params: { path: { preview } },
          parseAs: 'text',
        }),
      ),
    staleTime: Infinity,
  });

export const markdownQuery = (preview: string) =>
  queryOptions({
    queryKey: ['preview-part', preview, 'markdown'],
    queryFn: () =>
      answer(api.GET('/api/v1/previews/{preview}/markdown', { params: { path: { preview } } })),
    staleTime: Infinity,
  });
