import { Anchor, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Artifact } from '../../api/views';
import { artifactsQuery, contentOf, type FileRef } from '../../api/files';
import { bytes } from '../../format/bytes';
import { typeName } from '../../format/fileType';
import { Ago } from '../../parts/Ago';
import { ACTIONS, type Column } from '../../parts/DataTable';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { PagedTable } from '../../parts/PagedTable';
import { PreviewDrawer } from '../../parts/preview/PreviewDrawer';
import { usePreview } from '../../parts/preview/usePreview';
import { useListSearch } from '../../parts/useListSearch';

const route = getRouteApi('/frame/w/$workspace/artifacts');

const refOf = ({ id }: Artifact): FileRef => ({ kind: 'artifact', id });

const facts = (workspace: string): readonly Column<Artifact>[] => [
  { name: 'Name', order: (one) => one.name, cell: (one) => one.name },
  {
    name: 'Type',
    order: (one) => typeName(one.name, one.media_type),
    cell: (one) => typeName(one.name, one.media_type),
  },
  { name: 'Size', order: (one) => one.bytes, cell: (one) => bytes(one.bytes) },
  { name: 'Version', order: (one) => one.version, cell: (one) => one.version },
  {
    name: 'From',
    order: (one) => one.thread_title ?? '',
    cell: (one) =>
      one.thread_id ? (
        <Anchor component={Link} to={`/w/${workspace}/chat/${one.thread_id}`}>
          {one.thread_title ?? 'a thread'}
        </Anchor>
      ) : (
        'a program'
      ),
  },
  {
    name: 'Saved',
    order: (one) => one.created_at,
    cell: (one) => <Ago at={one.created_at} />,
  },
];

const words = (one: Artifact) =>
  [one.name, typeName(one.name, one.media_type), one.thread_title ?? ''].join(' ');

export function ArtifactsPage() {
  const { workspace } = route.useParams();
  const [{ cursor }, setSearch] = useListSearch();
  const [file, show] = usePreview();
  const query = useQuery(artifactsQuery(workspace, cursor));
  const columns: Column<Artifact>[] = [
    ...facts(workspace),
    {
      name: ACTIONS,
      cell: (one) => (
        <Button.Group>
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
        </Button.Group>
      ),
    },
  ];
  return (
    <Page
      title="Artifacts"
      about="Files that left a sandbox, each at its newest version: of your threads, of those that are shared, and of programs with your keys."
    >
      <Panel title="In this workspace">
        <Loaded query={query}>
          {(page) => (
            <PagedTable
              label="artifacts"
              page={page}
              rowKey={(one) => one.id}
              columns={columns}
              words={words}
              empty={<Empty workspace={workspace} />}
              cursor={cursor}
              onGo={(to) => setSearch({ cursor: to })}
            />
          )}
        </Loaded>
      </Panel>
      {file && <PreviewDrawer file={file} onShow={show} onClose={() => show(null)} />}
    </Page>
  );
}

const Empty = ({ workspace }: { workspace: string }) => (
  <>
    <p>No files yet. What code saves in a thread stands here, with all its versions.</p>
    <Button
      variant="default"
      renderRoot={(props) => <Link to="/w/$workspace/chat" params={{ workspace }} {...props} />}
    >
      Begin a thread
    </Button>
  </>
);
