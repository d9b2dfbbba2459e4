import type { ApiDocument, Content, Operation, Schema } from '../../api/document';

/** One call of the API. */
export interface Call {
  method: string;
  path: string;
  operation: Operation;
}

/** A value in a body, with where it stands. */
export interface Field {
  name: string;
  kind: string;
  isRequired: boolean;
  about: string;
}

/** How deep a body is told; ours are not deeper. */
const DEPTH = 5;

/** All calls by what they are about, in the order of the document. */
export function callsByTag(document: ApiDocument): Map<string, Call[]> {
  const groups = new Map<string, Call[]>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const tag = operation.tags?.[0] ?? 'other';
      const group = groups.get(tag) ?? [];
      group.push({ method: method.toUpperCase(), path, operation });
      groups.set(tag, group);
    }
  }
  return groups;
}

/** The words by which a call is found. */
export const wordsOf = ({ method, path, operation }: Call) =>
  `${method} ${path} ${operation.summary ?? ''} ${operation.operationId}`.toLowerCase();

const nameOf = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1);

/** A schema without references, and without the choice of being nothing. */
function plain(document: ApiDocument, schema: Schema): Schema {
  if (schema.$ref !== undefined) {
    const found = document.components.schemas[nameOf(schema.$ref)];
    return found === undefined ? {} : plain(document, found);
  }
  const choice = schema.oneOf?.find((one) => one.type !== 'null');
  return choice === undefined ? schema : plain(document, choice);
}

/** The kind of a value in words. */
export function kindOf(document: ApiDocument, schema: Schema): string {
  if (schema.$ref !== undefined) return kindOf(document, plain(document, schema));
  if (schema.oneOf) return schema.oneOf.map((one) => kindOf(document, one)).join(' or ');
  if (schema.allOf) return 'object';
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  const types = [schema.type ?? 'anything'].flat();
  const said = types.map((type) =>
    type === 'array' && schema.items ? `list of ${kindOf(document, schema.items)}` : type,
  );
  const { minimum, maximum } = schema;
  const range =
    minimum !== undefined && maximum !== undefined ? ` from ${minimum} to ${maximum}` : '';
  const isTold = schema.format !== undefined && types.includes('string');
  return said.join(' or ') + (isTold ? ` (${schema.format ?? ''})` : '') + range;
}

/** Everything in a body, the inner ones with the names of those around them. */
export function fieldsOf(document: ApiDocument, schema: Schema, prefix = '', depth = 0): Field[] {
  const whole = plain(document, schema);
  if (depth >= DEPTH) return [];
  if (whole.allOf) return whole.allOf.flatMap((one) => fieldsOf(document, one, prefix, depth + 1));
  if (whole.items) return fieldsOf(document, whole.items, `${prefix}[]`, depth + 1);
  const dot = prefix === '' ? '' : '.';
  return Object.entries(whole.properties ?? {}).flatMap(([name, value]) => {
    const full = `${prefix}${dot}${name}`;
    const about = value.description ?? value.oneOf?.[0]?.description ?? '';
    const isRequired = whole.required?.includes(name) ?? false;
    const field = { name: full, kind: kindOf(document, value), isRequired, about };
    return [field, ...fieldsOf(document, value, full, depth + 1)];
  });
}

/** The first kind of body that is there, with its media type. */
export function bodyOf(content: Content | undefined): { media: string; schema: Schema } | null {
  const [first] = Object.entries(content ?? {});
  return first === undefined ? null : { media: first[0], schema: first[1].schema ?? {} };
}

/** The call as one types it; values in capitals are to be filled in. */
export function curlOf({ method, path, operation }: Call, origin: string): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const parts = [`curl -s -X ${method} "${origin}${filled}"`];
  const takesKey = operation.security?.some((way) => 'api_key' in way) ?? false;
  if (takesKey) parts.push('-H "authorization: Bearer $KEY"');
  const body = bodyOf(operation.requestBody?.content);
  if (body?.media === 'application/json') {
    parts.push(`-H 'content-type: application/json' -d '{}'`);
  } else if (body !== null) {
    parts.push('--data-binary @FILE');
  }
  return parts.join(' \\\n     ');
}
