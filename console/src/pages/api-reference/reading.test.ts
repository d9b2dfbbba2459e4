import { expect, test } from 'vitest';
import type { ApiDocument, Operation } from '../../api/document';
import { callsByTag, curlOf, fieldsOf, kindOf, wordsOf } from './reading';

const operation: Operation = {
  operationId: 'sandboxes_create',
  tags: ['sandboxes'],
  summary: 'Makes a sandbox.',
  requestBody: {
    content: { 'application/json': { schema: { $ref: '#/components/schemas/New' } } },
  },
  responses: {},
  security: [{ api_key: [] }, { session: [] }],
};

const document: ApiDocument = {
  info: { title: 'Glovebox', version: '0.1.0' },
  paths: { '/api/v1/workspaces/{workspace}/x': { post: operation } },
  components: {
    schemas: {
      New: {
        type: 'object',
        required: ['parts'],
        properties: {
          class: {
            oneOf: [
              { $ref: '#/components/schemas/Class', description: 'How large.' },
              { type: 'null' },
            ],
          },
          parts: {
            type: 'array',
            items: { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } },
          },
        },
      },
      Class: { type: 'string', enum: ['SMALL', 'LARGE'] },
      Round: { type: 'object', properties: { again: { $ref: '#/components/schemas/Round' } } },
    },
  },
};

test('calls stand under what they are about, and are found by their words', () => {
  const [call] = callsByTag(document).get('sandboxes') ?? [];
  expect(call).toMatchObject({ method: 'POST', path: '/api/v1/workspaces/{workspace}/x' });
  expect(call && wordsOf(call)).toContain('makes a sandbox');
});

test('a body is told with everything in it', () => {
  expect(fieldsOf(document, { $ref: '#/components/schemas/New' })).toEqual([
    { name: 'class', kind: '"SMALL" or "LARGE" or null', isRequired: false, about: 'How large.' },
    { name: 'parts', kind: 'list of object', isRequired: true, about: '' },
    { name: 'parts[].at', kind: 'string (date-time)', isRequired: false, about: '' },
  ]);
});

test('a body that holds itself has an end', () => {
  const fields = fieldsOf(document, { $ref: '#/components/schemas/Round' });
  expect(fields.at(-1)?.name).toBe('again.again.again.again.again');
});

test('numbers are told with their range', () => {
  const limit = { type: ['integer', 'null'], format: 'int32', minimum: 1, maximum: 500 };
  expect(kindOf(document, limit)).toBe('integer or null from 1 to 500');
});

test('a call is shown as one types it', () => {
  const call = { method: 'POST', path: '/api/v1/workspaces/{workspace}/x', operation };
  expect(curlOf(call, 'https://gb')).toBe(
    [
      'curl -s -X POST "https://gb/api/v1/workspaces/$WORKSPACE/x"',
      '-H "authorization: Bearer $KEY"',
      `-H 'content-type: application/json' -d '{}'`,
    ].join(' \\\n     '),
  );
});
