// Schemas of draft-04, as draft 2020-12 says them. In draft-04 `exclusiveMinimum` and `exclusiveMaximum` say whether the limit itself is
// excluded; what else differs is the same in draft-06.
import { DATA, isObject, MAPS, type SchemaObject } from './keywords.ts';

const DRAFT_04 = /^https?:\/\/json-schema\.org\/draft-04\/schema#?$/;

/** A schema that says that it is of draft-04, in the words of 2020-12; any other as it is. */
export function fromDraft04(schema: SchemaObject): SchemaObject {
  const { $schema, ...rest } = schema;
  return typeof $schema === 'string' && DRAFT_04.test($schema) ? (converted(rest, false) as SchemaObject) : schema;
}

function converted(node: unknown, isMap: boolean): unknown {
  if (Array.isArray(node)) return node.map((item) => converted(item, false));
  if (!isObject(node)) return node;
  const inside = Object.entries(node).map(([name, value]) => {
    const isData = !isMap && DATA.has(name);
    return [name, isData ? value : converted(value, !isMap && MAPS.has(name))];
  });
  return isMap ? Object.fromEntries(inside) : withLimits(Object.fromEntries(inside));
}

/** One part, without its parts. */
export function withLimits(node: SchemaObject): SchemaObject {
  return exclusive(exclusive(node, 'minimum', 'exclusiveMinimum'), 'maximum', 'exclusiveMaximum');
}

function exclusive(node: SchemaObject, inclusive: string, keyword: string): SchemaObject {
  const { [keyword]: isExclusive, ...rest } = node;
  if (typeof isExclusive !== 'boolean') return node;
  const { [inclusive]: limit, ...others } = rest;
  return isExclusive && typeof limit === 'number' ? { ...others, [keyword]: limit } : rest;
}
