/**
 * How the schemas of this package are built. Every schema is plain JSON Schema (2020-12) with a TypeScript type of the same
 * name; one with a `title` becomes a named component of the OpenAPI document and a named type of the client.
 */

import type { Static, TObject, TProperties, TSchema, TUnsafe } from 'typebox';
import * as Type from 'typebox';

export { type Static, type TSchema, Type };

/** An object that refuses unknown fields: 400 `invalid_request`, which names them. */
export function Strict<P extends TProperties>(properties: P, options: Record<string, unknown> = {}): TObject<P> {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

/** A type array instead of `anyOf`: shorter to read, and faster to check. */
export function Nullable<T extends TSchema>(
  schema: T,
  options: Record<string, unknown> = {},
): TUnsafe<Static<T> | null> {
  const { type, ...rest } = schema as unknown as { type?: string };
  if (typeof type !== 'string') {
    return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }], ...options });
  }
  const values = (rest as { enum?: unknown[] }).enum;
  return Type.Unsafe<Static<T> | null>({
    ...rest,
    ...(values && { enum: [...values, null] }),
    type: [type, 'null'],
    ...options,
  });
}

/** One of a few strings. */
export function OneOf<const V extends readonly string[]>(
  values: V,
  options: Record<string, unknown> = {},
): TUnsafe<V[number]> {
  return Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...options });
}

/** A union whose members are distinguished by the field `type`. */
export function Tagged<const S extends TSchema[]>(schemas: S, options: Record<string, unknown> = {}) {
  return Type.Unsafe<Static<S[number]>>({ oneOf: schemas, discriminator: { propertyName: 'type' }, ...options });
}

/** An instant: ISO 8601 in UTC with milliseconds and `Z` in responses; any ISO 8601 instant with an offset in requests. */
export const Timestamp = Type.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] });

/** An identifier: its prefix, `_`, and 26 characters that sort by time of creation. */
export function Id(prefix: IdPrefix, description?: string) {
  return Type.String({
    pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`,
    examples: [`${prefix}_01k9xq3v7gf3pbt8zn5e6m2r4c`],
    ...(description && { description }),
  });
}

/** The prefixes of all identifiers. No credential starts with one of them. */
export const idPrefixes = [
  'org',
  'key',
  'agt',
  'env',
  'ses',
  'op',
  'call',
  'whs',
  'whd',
  'evt',
  'msg',
  'req',
  'sch',
  'wtn',
  'file',
  'usr',
  'inv',
  'shr',
  'dst',
  'dsd',
] as const;
export type IdPrefix = (typeof idPrefixes)[number];

/** The caller's own values on a resource: at most 50, keys up to 64 and strings up to 512 characters. */
export const Metadata = Type.Unsafe<Record<string, string | number | boolean | null>>({
  type: 'object',
  title: 'Metadata',
  description: 'Values of your own: at most 50, keys up to 64 characters, strings up to 512.',
  maxProperties: 50,
  propertyNames: { minLength: 1, maxLength: 64 },
  additionalProperties: { type: ['string', 'number', 'boolean', 'null'], maxLength: 512 },
});

/** A JSON Schema as data, as in a tool's `inputSchema`. */
export const JsonSchema = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  title: 'JsonSchema',
  description: 'A JSON Schema (draft 2020-12) of an object.',
  additionalProperties: true,
});

/** Any JSON value. */
export const Json = Type.Unsafe<unknown>({});

export const Name = Type.String({ minLength: 1, maxLength: 200 });

export const EnvironmentName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  'x-expected': '1 to 63 lower-case letters, digits, "_" and "-", the first a letter',
  description: 'The name of an environment, such as `production`.',
  examples: ['production'],
});

/** One page of a list: `{ data, page }`. */
export function Page<T extends TSchema>(item: T) {
  return Type.Object({ data: Type.Array(item), page: PageInfo });
}

const PageInfo = Type.Object(
  {
    hasMore: Type.Boolean({ description: 'Whether there are more items after `nextCursor`.' }),
    nextCursor: Type.String({
      description: 'Where to continue, even if `hasMore` is false; `""` only if the list has always been empty.',
    }),
  },
  { title: 'PageInfo' },
);

/** The query of a list: `limit`, `cursor` and the given properties. */
export function ListQuery<P extends TProperties>(properties: P, limit: { default: number; maximum: number } = lists) {
  return Strict({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limit.maximum,
        default: limit.default,
        description: 'Maximum number of items. A page of long items has fewer: about 4 MiB.',
      }),
    ),
    cursor: Type.Optional(Type.String({ description: 'The `page.nextCursor` of the previous page.', maxLength: 500 })),
    ...properties,
  });
}

const lists = { default: 20, maximum: 100 };
/** Pages of events and chunks can be longer than pages of resources. */
export const longLists = { default: 100, maximum: 1000 };
