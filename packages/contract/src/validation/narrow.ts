// Reduces a schema to the alternative that a value means: the one that its `type` names, or that has its JSON type. Errors are
// then reported against that alternative only.
import type { SchemaObject } from '../components.ts';

export function narrow(schema: SchemaObject, value: unknown): SchemaObject {
  const shape = shapeOf(schema, value);
  if (Array.isArray(value) && shape.items) {
    return { ...shape, prefixItems: value.map((item) => narrow(shape.items!, item)) };
  }
  if (!isRecord(value)) return shape;
  if (shape.properties) {
    const narrowed = Object.entries(shape.properties).map(([name, inner]) => [
      name,
      Object.hasOwn(value, name) ? narrow(inner, value[name]) : inner,
    ]);
    return { ...shape, properties: Object.fromEntries(narrowed) };
  }
  const { additionalProperties: inner } = shape;
  if (typeof inner === 'object') {
    const narrowed = Object.entries(value).map(([name, field]) => [name, narrow(inner, field)]);
    return { ...shape, properties: Object.fromEntries(narrowed) };
  }
  return shape;
}

/** The alternative that the value means; the schema itself if it has none or if it is unclear which one is meant. */
export function shapeOf(schema: SchemaObject, value: unknown): SchemaObject {
  const { oneOf, anyOf, discriminator, 'x-expected': expected } = schema;
  if (oneOf && discriminator) {
    const field = discriminator.propertyName;
    if (expected !== undefined && !(isRecord(value) && Object.hasOwn(value, field))) return noneOf(expected);
    return shapeOf(shapeNamed(oneOf, field, value), value);
  }
  if (!anyOf) return schema;
  const shapes = shapesOf(anyOf);
  const ofType = shapes.filter((shape) => mayHave(shape, jsonTypeOf(value)));
  const types = shapes.map(typesOf);
  if (ofType.length === 0 && types.every((names) => names.length > 0))
    return expected === undefined ? { type: [...new Set(types.flat())] } : noneOf(expected);
  if (isNoneOf(ofType, value)) return noneOf(expected ?? fieldsOf(ofType));
  const meant = ofType.length === 1 ? ofType[0] : closest(ofType, value);
  return meant ? shapeOf(meant, value) : schema;
}

/** Matches nothing. What would be right is in words that follow "must be". */
function noneOf(expected: string): SchemaObject {
  return { enum: [], 'x-expected': expected };
}

/** Whether an object has none of the fields that each alternative requires some of, or fields of several alternatives. */
function isNoneOf(shapes: readonly SchemaObject[], value: unknown): boolean {
  if (!isRecord(value) || shapes.length < 2 || !shapes.every(({ required = [] }) => required.length > 0)) return false;
  const meant = shapes.filter(({ required = [] }) => required.some((name) => Object.hasOwn(value, name)));
  return meant.length !== 1;
}

/** An object with the fields of one of these. */
function fieldsOf(shapes: readonly SchemaObject[]): string {
  const each = shapes.map(({ required = [] }) => `with ${required.map((name) => JSON.stringify(name)).join(' and ')}`);
  return `an object ${each.join(', or ')}`;
}

/** The alternative that the value names. If there is none of this name, the name is what is wrong. */
function shapeNamed(shapes: readonly SchemaObject[], field: string, value: unknown): SchemaObject {
  const nameOf = (shape: SchemaObject) => shape.properties?.[field]?.const;
  const named = isRecord(value) ? shapes.find((shape) => nameOf(shape) === value[field]) : undefined;
  if (named) return named;
  return { type: 'object', required: [field], properties: { [field]: { enum: shapes.map(nameOf) } } };
}

/** All alternatives, with nested ones in place of their parent. */
function shapesOf(anyOf: readonly SchemaObject[]): SchemaObject[] {
  return anyOf.flatMap((shape) => (shape.anyOf ? shapesOf(shape.anyOf) : [shape]));
}

function mayHave({ type, enum: values }: SchemaObject, jsonType: string): boolean {
  if (type === undefined) return !values || values.some((value) => jsonTypeOf(value) === jsonType);
  return [type].flat().some((one) => one === jsonType || (one === 'integer' && jsonType === 'number'));
}

function typesOf({ type, enum: values }: SchemaObject): string[] {
  return type === undefined ? (values ?? []).map(jsonTypeOf) : [type].flat();
}

/**
 * The object that the value means: it requires most of the value's fields and, among equals, has the fewest that the value lacks. With
 * `when` it is a policy, with `by` a rule, otherwise a policy for each tool. Undefined if that is not one of them alone.
 */
function closest(shapes: readonly SchemaObject[], value: unknown): SchemaObject | undefined {
  if (!isRecord(value)) return undefined;
  const ranked = shapes
    .map((shape) => {
      const { required = [] } = shape;
      const present = required.filter((name) => Object.hasOwn(value, name)).length;
      return { shape, present, missing: required.length - present };
    })
    .toSorted((a, b) => b.present - a.present || a.missing - b.missing);
  const [first, second] = ranked;
  const isTie = second && first!.present === second.present && first!.missing === second.missing;
  return isTie ? undefined : first?.shape;
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
