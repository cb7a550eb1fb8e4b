/** Titled schemas by name: what the OpenAPI document calls components, and the client its types. */

/** Plain JSON Schema (2020-12), as far as this project reads it. */
export interface SchemaObject {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  /** What the pattern asks for, in words that go on from "must be". */
  'x-expected'?: string;
  properties?: Record<string, SchemaObject>;
  required?: string[];
  additionalProperties?: boolean | SchemaObject;
  propertyNames?: SchemaObject;
  maxProperties?: number;
  items?: SchemaObject;
  maxItems?: number;
  anyOf?: SchemaObject[];
  oneOf?: SchemaObject[];
  discriminator?: { propertyName: string; mapping?: Record<string, string> };
  [keyword: string]: unknown;
}

/** Where a reference to a component points. */
export const componentPrefix = '#/components/schemas/';

/**
 * Collects the titled schemas of what it is given.
 *
 * `refer` answers with the same schema in which each titled one is a `$ref`; `schemas` holds them by title. Two
 * different schemas with one title are a mistake in the contract: it throws.
 */
export function collectComponents(): {
  refer: (schema: object) => SchemaObject;
  schemas: Record<string, SchemaObject>;
} {
  const schemas: Record<string, SchemaObject> = {};

  function refer(given: object): SchemaObject {
    const schema = given as SchemaObject;
    if (schema.title === undefined) return inside(schema);
    // `Nullable` adds null to a titled schema in place: the component is what it was before.
    const nullable = Array.isArray(schema.type) && schema.type.includes('null');
    const { description, ...component } = inside(nullable ? withoutNull(schema) : schema);
    const { title = '' } = schema;
    const known = schemas[title];
    if (known) {
      const { description: _, ...rest } = known;
      if (sorted(rest) !== sorted(component)) throw new Error(`two schemas are titled ${title}`);
    }
    if (!known || (!nullable && known.description === undefined)) {
      schemas[title] = { ...component, ...(description !== undefined && !nullable && { description }) };
    }
    const $ref = componentPrefix + title;
    const local = description !== undefined && description !== schemas[title]?.description ? { description } : {};
    return nullable ? { anyOf: [{ $ref }, { type: 'null' }], ...local } : { $ref, ...local };
  }

  // Only where schemas stand: a property may be called `title`, and examples are data.
  function inside(schema: SchemaObject): SchemaObject {
    const { properties, items, additionalProperties, anyOf, oneOf, discriminator, ...rest } = schema;
    return {
      ...rest,
      ...(properties && {
        properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, refer(one)])),
      }),
      ...(items && { items: refer(items) }),
      ...(additionalProperties !== undefined && {
        additionalProperties:
          typeof additionalProperties === 'object' ? refer(additionalProperties) : additionalProperties,
      }),
      ...(anyOf && { anyOf: anyOf.map(refer) }),
      ...(oneOf && { oneOf: oneOf.map(refer) }),
      ...(discriminator && {
        discriminator: { ...discriminator, mapping: mapping(discriminator.propertyName, oneOf) },
      }),
    };
  }

  return { refer, schemas };
}

function withoutNull(schema: SchemaObject): SchemaObject {
  const types = (schema.type as string[]).filter((type) => type !== 'null');
  const { enum: values, ...rest } = schema;
  return {
    ...rest,
    type: types.length === 1 ? types[0]! : types,
    ...(values && { enum: values.filter((value) => value !== null) }),
  };
}

/** As text in which the order of keys does not matter. */
function sorted(schema: SchemaObject): string {
  return JSON.stringify(schema, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

function mapping(field: string, schemas: SchemaObject[] = []): Record<string, string> {
  return Object.fromEntries(
    schemas.map((schema) => [String(schema.properties?.[field]?.const), componentPrefix + schema.title]),
  );
}
