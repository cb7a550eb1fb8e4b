// Several parts of a schema that apply to the same value, as one part; and alternatives as one part that allows what one of them allows.
import { isSameJson } from '../../lib/json/same-json.ts';
import { isObject, type SchemaObject } from '../../schemas/keywords.ts';

type Combine = (one: unknown, other: unknown) => unknown;
type Values = Record<string, unknown>;

const largest: Combine = (one, other) => Math.max(one as number, other as number);
const smallest: Combine = (one, other) => Math.min(one as number, other as number);
/** The schema of what both allow; the two are merged when they are read. */
const both: Combine = (one, other) => {
  if (isObject(one) && isObject(other)) return { allOf: [one, other] };
  return one === true ? other : other === true ? one : false;
};

const combined: Readonly<Record<string, Combine>> = {
  minimum: largest,
  exclusiveMinimum: largest,
  minLength: largest,
  minItems: largest,
  minProperties: largest,
  maximum: smallest,
  exclusiveMaximum: smallest,
  maxLength: smallest,
  maxItems: smallest,
  maxProperties: smallest,
  properties: (one, other) => byName(one as Values, other as Values, both),
  required: (one, other) => [...new Set([...(one as string[]), ...(other as string[])])],
  enum: (one, other) => (one as unknown[]).filter((value) => (other as unknown[]).some((it) => isSameJson(it, value))),
  items: both,
  additionalProperties: both,
};

/** What matches both. What can't be said of both is as in the first. Undefined: nothing does. */
export function allOf(one: SchemaObject, other: SchemaObject): SchemaObject | undefined {
  const merged: Values = { ...other, ...one };
  for (const [keyword, value] of Object.entries(other)) {
    const combine = combined[keyword];
    const own = one[keyword];
    if (own !== undefined && combine && !isSameJson(own, value)) merged[keyword] = combine(own, value);
  }
  const types = commonTypes(typesOf(one), typesOf(other));
  if (types?.length === 0 || (Array.isArray(merged.enum) && merged.enum.length === 0)) return undefined;
  if (types) merged.type = types.length === 1 ? types[0] : types;
  return merged;
}

/** The schema of what one of several objects allows. `required` is what all of them require. */
export function anyOfObjects(cases: readonly [SchemaObject, ...SchemaObject[]]): SchemaObject {
  const [first, ...others] = cases;
  if (others.length === 0) return first;
  const { additionalProperties: _, ...rest } = first;
  const common = Object.entries(rest).filter(([key, value]) => cases.every((one) => isSameJson(one[key], value)));
  const declared = new Map<string, unknown[]>();
  for (const one of cases)
    for (const [name, schema] of Object.entries((one.properties ?? {}) as Values))
      declared.set(name, [...(declared.get(name) ?? []), schema]);
  // The model has to know of what only some require.
  for (const name of cases.flatMap((one) => (one.required ?? []) as string[]))
    if (!declared.has(name)) declared.set(name, [{}]);
  const properties = Object.fromEntries([...declared].map(([name, schemas]) => [name, either(schemas)]));
  const required = cases
    .map((one) => (one.required ?? []) as string[])
    .reduce((one, other) => one.filter((name) => other.includes(name)));
  const isClosed = cases.every((one) => one.additionalProperties === false);
  return {
    ...Object.fromEntries(common),
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    ...(isClosed && { additionalProperties: false }),
  };
}

/** Values that are listed become one list. */
function either(schemas: readonly unknown[]): unknown {
  const different = schemas.filter((one, at) => schemas.findIndex((it) => isSameJson(it, one)) === at);
  if (different.length === 1) return different[0];
  const lists = different.map(listed);
  if (lists.includes(undefined)) return { anyOf: different };
  const { const: _, type, ...first } = different[0] as Values;
  const isOfOneType = different.every((one) => isSameJson((one as Values).type, type));
  const values = new Map(lists.flatMap((list) => list!.map((value) => [JSON.stringify(value), value])));
  return { ...first, ...(isOfOneType && type !== undefined && { type }), enum: [...values.values()] };
}

/** The values of a schema that allows a few values, and besides says only their type. */
export function listed(schema: unknown): readonly unknown[] | undefined {
  if (!isObject(schema)) return undefined;
  if (Object.keys(schema).some((key) => !LISTING.has(key))) return undefined;
  return 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : undefined;
}
const LISTING = new Set(['const', 'enum', 'type', 'title', 'description', 'default']);

function byName(one: Values, other: Values, combine: Combine): Values {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return Object.fromEntries(
    names.map((name) => {
      const [has, hasToo] = [Object.hasOwn(one, name), Object.hasOwn(other, name)];
      if (!has || !hasToo) return [name, has ? one[name] : other[name]];
      return [name, isSameJson(one[name], other[name]) ? one[name] : combine(one[name], other[name])];
    }),
  );
}

export function typesOf({ type }: SchemaObject): string[] | undefined {
  return type === undefined ? undefined : ([type].flat() as string[]);
}

function commonTypes(one: string[] | undefined, other: string[] | undefined): string[] | undefined {
  if (!one || !other) return one ?? other;
  const isIn = (type: string, types: string[]) =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  return [...new Set([...one.filter((type) => isIn(type, other)), ...other.filter((type) => isIn(type, one))])];
}
