import { CompletionContext } from '@codemirror/autocomplete';
import { json } from '@codemirror/lang-json';
import { EditorState } from '@codemirror/state';
import { CreateAgent } from '@signalbox/contract';
import { fieldErrors } from '@signalbox/contract/check';
import { expect, test } from 'vitest';
import { pathParts, rangeAt } from './json-nodes.ts';
import type { JsonSchema } from './schema-at.ts';
import { completeFrom } from './schema-help.ts';
import { schemaOfInputs, schemaOfSchemas } from './schema-of-schemas.ts';

/** What is offered at `|`. */
function offered(schema: object, text: string): string[] {
  const pos = text.indexOf('|');
  const state = EditorState.create({ doc: text.replace('|', ''), extensions: json() });
  const result = completeFrom(schema as JsonSchema)(new CompletionContext(state, pos, true));
  return (result?.options ?? []).map(({ label }) => label);
}

/** The text that is marked for a path. */
function marked(text: string, path: string): string {
  const state = EditorState.create({ doc: text, extensions: json() });
  const { from, to } = rangeAt(state, pathParts(path));
  return text.slice(from, to);
}

test('a name that the object has already is not offered', () => {
  const names = offered(CreateAgent, '{ "name": "a", | }');
  expect(names).toContain('"instructions"');
  expect(names).not.toContain('"name"');
});

test('only the fields of the tool’s own type are offered', () => {
  const text = (type: string) => `{ "tools": [{ "type": "${type}", "|" }] }`;
  expect(offered(CreateAgent, text('http'))).toContain('"request"');
  expect(offered(CreateAgent, text('http'))).not.toContain('"url"');
  expect(offered(CreateAgent, text('mcp'))).toContain('"url"');
  expect(offered(CreateAgent, text('mcp'))).not.toContain('"request"');
});

test('the values of a list are offered, as JSON', () => {
  expect(offered(CreateAgent, '{ "tools": [{ "type": "http", "request": { "method": "|" } }] }')).toEqual(
    expect.arrayContaining(['"GET"', '"DELETE"']),
  );
  expect(offered(schemaOfSchemas, '{ "properties": { "a": { "type": | } } }')).toContain('"integer"');
});

test('keywords are offered at any depth of a schema', () => {
  const deep = '{ "properties": { "a": { "type": "array", "items": { "anyOf": [{ "|" }] } } } }';
  expect(offered(schemaOfSchemas, deep)).toEqual(expect.arrayContaining(['"type"', '"minLength"']));
});

test('a schema that refers to itself without end is searched only so far', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => [
      `d${level}`,
      { allOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] },
    ]),
  );
  expect(offered({ $ref: '#/$defs/d0', $defs }, '{ | }')).toEqual([]);
  expect(offered({ $ref: '#', properties: { a: {} } }, '{ | }')).toEqual(['"a"']);
});

test('a problem is marked at the name of its field, or at what contains it if the field is missing', () => {
  const text = '{\n  "tools": [{ "type": "http" }, { "request": { "url": 7 } }]\n}';
  expect(marked(text, 'tools[1].request.url')).toBe('"url"');
  expect(marked(text, 'tools[1].request.method')).toBe('"request"');
  expect(marked(text, 'tools[0]')).toBe('{');
  expect(marked(text, 'name')).toBe('{');
});

test.each<[string, object, string[]]>([
  ['nothing in a schema that is right', { type: 'object', properties: { a: { type: ['string', 'null'] } } }, []],
  ['an unknown type', { properties: { a: { type: 'text' } } }, ['properties.a.type']],
  ['a list that must be one', { properties: { a: { required: 'b' } } }, ['properties.a.required']],
])('a schema is checked while it is written: %s', (_title, schema, paths) => {
  expect(fieldErrors(schemaOfInputs, schema).map(({ path }) => path)).toEqual(paths);
});

test('an input’s schema must be that of an object', () => {
  expect(fieldErrors(schemaOfInputs, { type: 'string' }).map(({ path }) => path)).toEqual(['type']);
});
