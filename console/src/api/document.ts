import { queryOptions } from '@tanstack/react-query';
import { failureOf, unreachable } from './failure';

/** What the API's document says of a value; only what ours uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

export type Content = Record<string, { schema?: Schema }>;

export interface Parameter {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  schema?: Schema;
}

export interface Operation {
  operationId: string;
  tags?: string[];
  summary?: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { description?: string; content?: Content }>;
  security?: Record<string, string[]>[];
}

export interface ApiDocument {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** The document of the API, as this server has it: it is in no document itself. */
export const documentQuery = queryOptions({
  queryKey: ['document'],
  queryFn: async (): Promise<ApiDocument> => {
    let response: Response;
    try {
      response = await fetch('/api/v1/openapi.json');
    } catch {
      throw unreachable();
    }
    const body: unknown = await response.json().catch(() => null);
    if (!response.ok || body === null) throw failureOf(response.status, body);
    return body as ApiDocument;
  },
  staleTime: Infinity,
});
