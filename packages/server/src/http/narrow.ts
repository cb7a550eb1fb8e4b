// A schema without the alternatives that a value does not mean: what is wrong with it is then wrong with the shape that its
// `type` names, or that has its JSON type, and no other shape has a word to say.
import type { SchemaObject } from '@signalbox/contract';

export function narrow(schema: SchemaObject, value: unknown): SchemaObject {
  const { oneOf, anyOf, discriminator } = schema;
  if (oneOf && discriminator) return narrow(shapeNamed(oneOf, discriminator.propertyName, value), value);
  if (anyOf) {
    const [meant, ...others] = anyOf.filter((shape) => mayHave(shape, jsonTypeOf(value)));
    return meant && others.length === 0 ? narrow(meant, value) : schema;
  }
  if (Array.isArray(value) && schema.items) {
    return { ...schema, prefixItems: value.map((item) => narrow(schema.items!, item)) };
  }
  if (schema.properties && isRecord(value)) {
    const narrowed = Object.entries(schema.properties).map(([name, inner]) => [
      name,
      Object.hasOwn(value, name) ? narrow(inner, value[name]) : inner,
    ]);
    return { ...schema, properties: Object.fromEntries(narrowed) };
  }
  return schema;
}

/** The shape that the value names; where it names none that there is, that itself is what is wrong. */
function shapeNamed(shapes: readonly SchemaObject[], field: string, value: unknown): SchemaObject {
  const nameOf = (shape: SchemaObject) => shape.properties?.[field]?.const;
  const named = isRecord(value) ? shapes.find((shape) => nameOf(shape) === value[field]) : undefined;
  if (named) return named;
  return { type: 'object', required: [field], properties: { [field]: { enum: shapes.map(nameOf) } } };
}

function mayHave({ type, anyOf, enum: values }: SchemaObject, jsonType: string): boolean {
  if (anyOf) return anyOf.some((shape) => mayHave(shape, jsonType));
  if (type === undefined) return !values || values.some((value) => jsonTypeOf(value) === jsonType);
  return [type].flat().some((one) => one === jsonType || (one === 'integer' && jsonType === 'number'));
}

function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
