// A JSON Schema that matches an example, to start from.
import { isRecord } from './model.ts';

/** Every field is required. Elements of a list may differ: a field that not all of them have is optional. */
export function schemaOfExample(example: unknown): Record<string, unknown> {
  return schemaOfAll([example]);
}

function schemaOfAll(values: readonly unknown[]): Record<string, unknown> {
  const types = [...new Set(values.map(typeOf))];
  // 1 and 1.5 are both numbers.
  const known = types.includes('number') ? types.filter((type) => type !== 'integer') : types;
  if (known.length === 0) return {};
  return {
    type: known.length === 1 ? known[0] : known,
    ...(known.includes('object') && objectOf(values.filter(isRecord))),
    ...(known.includes('array') && { items: schemaOfAll(values.filter((one) => Array.isArray(one)).flat()) }),
  };
}

function objectOf(records: readonly Record<string, unknown>[]): Record<string, unknown> {
  const names = [...new Set(records.flatMap(Object.keys))];
  const entries = names.map((name): [string, unknown] => [
    name,
    schemaOfAll(records.flatMap((record) => (Object.hasOwn(record, name) ? [record[name]] : []))),
  ]);
  return {
    properties: Object.fromEntries(entries),
    required: names.filter((name) => records.every((record) => Object.hasOwn(record, name))),
  };
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
}
