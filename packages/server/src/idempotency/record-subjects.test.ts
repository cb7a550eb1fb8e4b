import { type Route, routes, type SchemaObject } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { SUBJECT_DEPTH, subjectFields, subjectsOf } from './record-subjects.ts';

const sessionId = 'ses_01k9xq3v7gf3pbt8zn5e6m2r4c';
const fileId = 'file_01k9xq3v7gf3pbt8zn5e6m2r4c';

test('a record names what its path, the fields of its body and the resources of its response name', () => {
  const body = { endUser: { id: 'a' }, input: { sessionId: 'ses_of_a_model', endUser: { id: 'c' } } };
  const response = {
    results: [{ approval: { sessionId, input: { deep: { endUser: { id: 'd' } } } } }, { endUser: null }],
  };
  expect(subjectsOf({ path: `/api/v1/files/${fileId}/x`, body }, response)).toEqual([fileId, 'end_user:a', sessionId]);
  expect(subjectsOf({ path: '/', body: null })).toEqual([]);
});

/** How deep the objects are that have a field which names a subject. */
function depthsIn(
  schema: SchemaObject,
  isSubject: (name: string, field: SchemaObject) => boolean,
  depth = 1,
): number[] {
  const { properties = {}, items, anyOf = [], oneOf = [] } = schema;
  const fields = Object.entries(properties);
  const own = fields.some((field) => isSubject(...field)) ? [depth] : [];
  const inner = fields.flatMap(([, field]) => depthsIn(field, isSubject, depth + 1));
  const same = [...(items ? [items] : []), ...anyOf, ...oneOf].flatMap((one) => depthsIn(one, isSubject, depth));
  return [...own, ...inner, ...same];
}

/** Approvers have a field `endUser` that is true. */
const isSubject = (name: string, { const: constant }: SchemaObject) =>
  (subjectFields as readonly string[]).includes(name) && constant !== true;
/** A message names files, which have records of their own. */
const isSubjectOfBody = (name: string, field: SchemaObject) => name !== 'fileId' && isSubject(name, field);

const stored = Object.entries<Route>(routes).filter(([, { method, repeatable }]) => method === 'POST' && !repeatable);

test.each(stored)('what %s is about is named where a record looks for it', (_name, { body = {}, result }) => {
  expect(Math.max(1, ...depthsIn(body as SchemaObject, isSubjectOfBody))).toBe(1);
  expect(Math.max(1, ...depthsIn(result as SchemaObject, isSubject))).toBeLessThanOrEqual(SUBJECT_DEPTH);
});
