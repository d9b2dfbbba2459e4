import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Model } from '../../api/views';
import { modelsQuery } from '../../api/models';
import { Ago } from '../../parts/Ago';
import { CopyText } from '../../parts/CopyText';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Facts, Page, Panel } from '../../parts/Page';
import { State } from '../../parts/State';
import { useVersionedDraft } from '../../parts/useVersionedDraft';
import { draftOf, ModelForm } from './ModelForm';
import { ModelKey } from './ModelKey';
import { ModelTester } from './ModelTester';

const route = getRouteApi('/frame/admin/admin/system/models/$model');

export function ModelPage() {
  const { model } = route.useParams();
  const query = useQuery(modelsQuery);
  const found = query.data?.items.find(({ id }) => id === model);
  return (
    <Page
      title={found?.name ?? 'Model'}
      about="What answers in chat, where it is, and whether it can be worked with."
      actions={
        <Anchor component={Link} to="/admin/system/models">
          All models
        </Anchor>
      }
    >
      <Loaded query={query}>
        {() =>
          found ? (
            <Shown key={found.id} model={found} />
          ) : (
            <Notice tone="warn" title="There is no such model" />
          )
        }
      </Loaded>
    </Page>
  );
}

function Shown({ model }: { model: Model }) {
  // The settings and the key share the version of the model.
  const draft = useVersionedDraft(draftOf(model));
  return (
    <>
      <Panel title="Overview">
        <Facts
          rows={[
            [
              'Used by',
              model.is_default ? (
                <State key="default" tone="info">
                  default
                </State>
              ) : (
                'nobody: another model is the default'
              ),
            ],
            ['Added', <Ago key="added" at={model.created_at} />],
            ['Id', <CopyText key="id" text={model.id} what="model id" />],
          ]}
        />
      </Panel>
      <Panel title="Test">
        <ModelTester model={model} />
      </Panel>
      <Panel title="Settings">
        <ModelForm model={model} draft={draft} />
      </Panel>
      <Panel title="API key">
        <ModelKey model={model} onChanged={draft.goOn} />
      </Panel>
    </>
  );
}
