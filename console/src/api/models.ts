import { queryOptions } from '@tanstack/react-query';
import { call, type Model, type ModelTest, type Page } from './chat';

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => call<Page<Model>>('GET', '/admin/models'),
});

/** What can be set of a model. A key that is left out stays as it is, and null takes it away. */
export interface ModelWish {
  name: string;
  base_url: string;
  model: string;
  context_tokens: number;
  connect_timeout_seconds: number;
  silence_timeout_seconds: number;
  is_default: boolean;
  api_key?: string | null;
}

export const createModel = (body: ModelWish) => call<Model>('POST', '/admin/models', { body });

/** A model after a change, with what else has changed with it. */
export type ChangedModel = Model & { notice?: string | null };

export const changeModel = (model: string, body: Partial<ModelWish> & { version: number }) =>
  call<ChangedModel>('PATCH', `/admin/models/${model}`, { body });

export const deleteModel = (model: string) => call<null>('DELETE', `/admin/models/${model}`);

export const testModel = (model: string) => call<ModelTest>('POST', `/admin/models/${model}/test`);
