import { expect, test } from 'vitest';
import { fileOf, readPreview } from './usePreview';

const id = '01900000-0000-7000-8000-000000000001';

test('an address names a file by its kind and id', () => {
  expect(fileOf(`artifact.${id}`)).toEqual({ kind: 'artifact', id });
  expect(readPreview({ preview: `knowledge.${id}` })).toEqual({ preview: `knowledge.${id}` });
});

test('anything else in an address is no file', () => {
  for (const preview of ['', 'artifact', `user.${id}`, `artifact.../../x`, `artifact.${id}.x`, 7]) {
    expect(readPreview({ preview }), String(preview)).toEqual({});
  }
});
