import { Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { KnowledgeFile } from '../../api/views';
import { contentOf, type FileRef, knowledgeQuery } from '../../api/files';
import { chatQuery } from '../../api/threads';
import { bytes } from '../../format/bytes';
import { typeName } from '../../format/fileType';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column } from '../../parts/DataTable';
import { FailureNote } from '../../parts/FailureNote';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import { PreviewDrawer } from '../../parts/preview/PreviewDrawer';
import { usePreview } from '../../parts/preview/usePreview';
import { useListSearch } from '../../parts/useListSearch';
import { AddKnowledge } from './AddKnowledge';
import { DeleteKnowledge } from './DeleteKnowledge';

const route = getRouteApi('/frame/w/$workspace/knowledge');

const refOf = ({ id }: KnowledgeFile): FileRef => ({ kind: 'knowledge', id });

const facts: readonly Column<KnowledgeFile>[] = [
  { name: 'Name', order: (one) => one.name, cell: (one) => one.name },
  {
    name: 'Type',
    order: (one) => typeName(one.name, one.media_type),
    cell: (one) => typeName(one.name, one.media_type),
  },
  { name: 'Size', order: (one) => one.bytes, cell: (one) => bytes(one.bytes) },
  { name: 'Added by', order: (one) => one.added_by, cell: (one) => one.added_by },
  { name: 'Added', order: (one) => one.created_at, cell: (one) => <Ago at={one.created_at} /> },
];

export function KnowledgePage() {
  const { workspace } = route.useParams();
  const [{ cursor }, setSearch] = useListSearch();
  const [file, show] = usePreview();
  const query = useQuery(knowledgeQuery(workspace, cursor));
  const chat = useQuery(chatQuery(workspace));
  const mayWrite = chat.data?.may_write ?? false;
  const [deleting, setDeleting] = useState<KnowledgeFile | null>(null);
  const known = query.data?.items.find(({ id }) => id === file?.id);
  const columns: Column<KnowledgeFile>[] = [
    ...facts,
    {
      name: ACTIONS,
      cell: (one) => (
        <Group gap={4} wrap="nowrap">
          <Button
            size="xs"
            variant="default"
            aria-label={`Preview ${one.name}`}
            onClick={() => show(refOf(one))}
          >
            Preview
          </Button>
          <Button
            component="a"
            size="xs"
            variant="default"
            href={contentOf(refOf(one))}
            download={one.name}
            aria-label={`Download ${one.name}`}
          >
            Download
          </Button>
          {mayWrite && (
            <Button
              size="xs"
              variant="default"
              aria-label={`Delete ${one.name}`}
              onClick={() => setDeleting(one)}
            >
              Delete
            </Button>
          )}
        </Group>
      ),
    },
  ];
  return (
    <Page
      title="Knowledge"
      about="Files that every thread of this workspace can open by their names. All members read them; editors and up look after them."
    >
      {!chat.data && <FailureNote error={chat.error} />}
      {chat.data && mayWrite && (
        <Panel title="Add files">
          <AddKnowledge key={workspace} workspace={workspace} limits={chat.data.limits} />
        </Panel>
      )}
      <Panel title="In this workspace">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="knowledge files"
              page={page}
              rowKey={(one) => one.id}
              columns={columns}
              words={(one) => `${one.name} ${one.added_by}`}
              empty={
                mayWrite
                  ? 'No files yet. Add price lists, templates or whatever threads need again and again: above.'
                  : 'No files yet. Editors of the workspace add them here.'
              }
              cursor={cursor}
              onGo={(to) => setSearch({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
      {deleting && (
        <DeleteKnowledge workspace={workspace} file={deleting} onClose={() => setDeleting(null)} />
      )}
      {file && (
        <PreviewDrawer
          file={file}
          known={known && { ...known, mediaType: known.media_type }}
          onShow={show}
          onClose={() => show(null)}
        />
      )}
    </Page>
  );
}
