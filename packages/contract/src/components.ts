/** Titled schemas by name: the components of the OpenAPI document and the types of the client. */

/** Plain JSON Schema (2020-12), as far as this project uses it. */
export interface SchemaObject {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  /** What a pattern, or a choice of several shapes, requires: in words that follow "must be". */
  'x-expected'?: string;
  /** For an object: combinations of fields; the service accepts any one of them. */
  'x-shapes'?: readonly Shape[];
  /** For a string: what it can begin with. */
  'x-prefixes'?: readonly string[];
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

/**
 * One combination of the fields of an object, for the types of clients. The service checks them itself, with errors that say more than a
 * schema could.
 */
export interface Shape {
  /** The only values that fields have in this shape. */
  values?: Readonly<Record<string, readonly string[]>>;
  requires?: readonly string[];
  excludes?: readonly string[];
}

/** The prefix of a reference to a component. */
export const componentPrefix = '#/components/schemas/';

/**
 * Collects titled schemas.
 *
 * `refer` returns the schema with a `$ref` in place of each titled one; `schemas` has them by title.
 *
 * @throws Error (from `refer`) if two different schemas have the same title
 */
export function collectComponents(): {
  refer: (schema: object) => SchemaObject;
  schemas: Record<string, SchemaObject>;
} {
  const schemas: Record<string, SchemaObject> = {};

  function refer(given: object): SchemaObject {
    const schema = given as SchemaObject;
    if (schema.title === undefined) return inside(schema);
    // `Nullable` adds null to a titled schema in place: the component is the schema without it.
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

  // Only where a schema is expected: a property can have the name `title`, and examples are data.
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

/** As JSON with sorted keys, so that their order does not matter. */
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
