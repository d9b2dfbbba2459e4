import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Model } from '../../api/views';
import { useChange } from '../../api/change';
import { changeModel, modelsQuery } from '../../api/models';
import { ACTIONS, type Column, DataTable } from '../../parts/DataTable';
import { FailureNote } from '../../parts/FailureNote';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import { RowMenu } from '../../parts/RowMenu';
import { State } from '../../parts/State';
import { AddModel } from './AddModel';
import { DeleteModel } from './DeleteModel';

const facts: readonly Column<Model>[] = [
  {
    name: 'Name',
    order: (one) => one.name,
    cell: (one) => (
      <>
        <Anchor component={Link} to={`/admin/system/models/${one.id}`}>
          {one.name}
        </Anchor>{' '}
        {one.is_default && <State tone="info">default</State>}
      </>
    ),
  },
  { name: 'Model', order: (one) => one.model, cell: (one) => <code>{one.model}</code> },
  { name: 'Base URL', order: (one) => one.base_url, cell: (one) => <code>{one.base_url}</code> },
  {
    name: 'Key',
    cell: (one) =>
      one.has_api_key ? <State tone="good">set</State> : <State tone="idle">none</State>,
  },
];

export function ModelsPage() {
  const query = useQuery(modelsQuery);
  const [deleting, setDeleting] = useState<Model | null>(null);
  const prefer = useChange(
    ({ id, version }: Model) => changeModel(id, { version, is_default: true }),
    [modelsQuery.queryKey, ['workspace']],
  );
  const columns: Column<Model>[] = [
    ...facts,
    {
      name: ACTIONS,
      cell: (one) => (
        <RowMenu
          of={one.name}
          actions={[
            ...(one.is_default
              ? []
              : [{ label: 'Make it the default', onClick: () => prefer.mutate(one) }]),
            {
              label: `Delete ${one.name}`,
              isDangerous: true,
              onClick: () => setDeleting(one),
            },
          ]}
        />
      ),
    },
  ];
  return (
    <Page
      title="Models"
      about="What answers in chat: the default one, in every workspace. Without a model people still run Python that they type."
    >
      <Panel title="Models">
        <FailureNote error={prefer.error} />
        <Loaded query={query}>
          {(page) => (
            <DataTable
              label="models"
              rows={page.items}
              rowKey={(one) => one.id}
              columns={columns}
              empty="No model yet. Add one below; any endpoint that speaks like OpenAI's does."
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Add a model">
        <AddModel />
      </Panel>
      {deleting && (
        <DeleteModel
          model={deleting}
          hasOthers={(query.data?.items.length ?? 0) > 1}
          onClose={() => setDeleting(null)}
        />
      )}
    </Page>
  );
}
