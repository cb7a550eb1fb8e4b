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
  const { oneOf, anyOf, discriminator } = schema;
  if (oneOf && discriminator) return shapeOf(shapeNamed(oneOf, discriminator.propertyName, value), value);
  if (!anyOf) return schema;
  const shapes = shapesOf(anyOf);
  const ofType = shapes.filter((shape) => mayHave(shape, jsonTypeOf(value)));
  const types = shapes.map(typesOf);
  if (ofType.length === 0 && types.every((names) => names.length > 0)) return { type: [...new Set(types.flat())] };
  const [meant, ...others] = ofType.length === 1 ? ofType : ofType.filter((shape) => hasRequired(shape, value));
  return meant && others.length === 0 ? shapeOf(meant, value) : schema;
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

/** Of two objects the value means the one whose required fields it has: with `when` it is a policy, otherwise policies by tool. */
function hasRequired({ required = [] }: SchemaObject, value: unknown): boolean {
  return isRecord(value) && required.every((name) => Object.hasOwn(value, name));
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
