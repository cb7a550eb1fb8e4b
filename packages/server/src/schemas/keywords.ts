// The keywords of JSON Schema: what each of them restricts, and where it has schemas. A keyword that is not here is ignored by the
// evaluation, so a misspelt one would silently allow what it was meant to refuse.
import { Format } from 'typebox/format';

export type SchemaNode = SchemaObject | boolean;
export type SchemaObject = { readonly [keyword: string]: unknown };

/** The only type that each keyword restricts; values of other types always satisfy it. */
export const ABOUT: Readonly<Record<string, 'object' | 'array' | 'string' | 'number'>> = {
  ...each('object', 'properties patternProperties additionalProperties unevaluatedProperties propertyNames required'),
  ...each('object', 'minProperties maxProperties dependentRequired dependentSchemas dependencies'),
  ...each('array', 'items prefixItems contains additionalItems unevaluatedItems minItems maxItems uniqueItems'),
  ...each('array', 'minContains maxContains'),
  ...each('string', 'minLength maxLength pattern format'),
  ...each('number', 'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'),
};

/** Keywords whose values are objects with a schema for each name that the author chose. */
export const MAPS = new Set(words('properties patternProperties $defs definitions dependentSchemas dependencies'));
/** Keywords whose values are a schema, or a list of schemas. */
const SCHEMAS = new Set(
  words(
    'allOf anyOf oneOf not if then else items prefixItems contains additionalItems unevaluatedItems additionalProperties unevaluatedProperties propertyNames contentSchema',
  ),
);
/** Their values are data, even if they look like schemas. */
export const DATA = new Set(words('const enum default examples example'));

/** Without an effect on the evaluation: of the standard, of OpenAPI, and of common editors and generators. */
const ANNOTATIONS = words(
  `title description default deprecated readOnly writeOnly examples $comment $schema $vocabulary contentEncoding
  contentMediaType example nullable discriminator xml externalDocs markdownDescription enumNames enumDescriptions
  markdownEnumDescriptions deprecationMessage errorMessage defaultSnippets propertyOrder propertyOrdering tsType`,
);
const REFERENCES = words('$id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor');
export const KEYWORDS: readonly string[] = [
  ...new Set([...Object.keys(ABOUT), ...MAPS, ...SCHEMAS, ...DATA, ...ANNOTATIONS, ...REFERENCES, 'type']),
];
const known = new Set(KEYWORDS);

export function isKnownKeyword(keyword: string): boolean {
  return known.has(keyword) || keyword.startsWith('x-');
}

/** The formats that are evaluated. Any other is ignored. */
export const FORMATS: readonly string[] = Format.Entries().map(([name]) => name);
/** Formats of OpenAPI and of generators that resemble an evaluated one. */
export const OTHER_FORMATS: readonly string[] = words(
  'cuid cuid2 nanoid ulid xid ksuid guid e164 jwt int8 int16 int32 int64 byte',
);

/** The schemas directly in one, with their path from it as in `properties.cents` and `anyOf[0]`. */
export function* schemasIn(node: SchemaObject): Generator<{ path: string; schema: SchemaNode }> {
  for (const [keyword, value] of Object.entries(node)) {
    if (!MAPS.has(keyword) && !SCHEMAS.has(keyword)) continue;
    if (isSchema(value) && !MAPS.has(keyword)) yield { path: keyword, schema: value };
    else if (Array.isArray(value))
      for (const [index, one] of value.entries())
        if (isSchema(one)) yield { path: `${keyword}[${index}]`, schema: one };
    if (isObject(value) && MAPS.has(keyword))
      for (const [name, one] of Object.entries(value))
        if (isSchema(one)) yield { path: `${keyword}.${name}`, schema: one };
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSchema(value: unknown): value is SchemaNode {
  return typeof value === 'boolean' || isObject(value);
}

function words(text: string): string[] {
  return text.split(/\s+/);
}

function each<T>(value: T, keywords: string): Record<string, T> {
  return Object.fromEntries(words(keywords).map((keyword) => [keyword, value]));
}
