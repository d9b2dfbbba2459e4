import { queryOptions } from '@tanstack/react-query';
import { answer, api } from './client';
import type { components } from './schema';

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => answer(api.GET('/api/v1/admin/models')),
});

type Schemas = components['schemas'];

export const createModel = (body: Schemas['CreateModel']) =>
  answer(api.POST('/api/v1/admin/models', { body }));

/** A key that is left out stays as it is, and null takes it away. */
export const changeModel = (model: string, body: Schemas['ChangeModel']) =>
  answer(api.PATCH('/api/v1/admin/models/{model}', { params: { path: { model } }, body }));

export const deleteModel = (model: string) =>
  answer(api.DELETE('/api/v1/admin/models/{model}', { params: { path: { model } } }));

export const testModel = (model: string) =>
  answer(api.POST('/api/v1/admin/models/{model}/test', { params: { path: { model } } }));
