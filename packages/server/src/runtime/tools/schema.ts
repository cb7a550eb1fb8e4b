// Whether a JSON Schema that somebody wrote is one (draft 2020-12, and what earlier drafts wrote differently), and can be
// evaluated. A broken one would not stay its author's trouble: a model's provider refuses all tools for one bad schema.
import Schema from 'typebox/schema';
import { bounded } from '../../lib/bounded.ts';

/** What is wrong with a schema that is to be of a tool's input; undefined where nothing is. */
export function checkInputSchema(schema: Record<string, unknown>): string | undefined {
  if (schema.type !== undefined && schema.type !== 'object')
    return 'must be the schema of an object ("type": "object")';
  return checkSchema(schema);
}

/** The same for a schema of any value. */
export function checkSchema(schema: Record<string, unknown>): string | undefined {
  try {
    if (!metaSchema.Check(schema)) return `is not a JSON Schema${placeOfError(schema)}`;
    const { patterns, references, targets } = partsOf(schema);
    for (const pattern of patterns) new RegExp(pattern, 'u');
    const lost = references.find((reference) => !targets.has(reference) && !resolves(schema, reference));
    if (lost !== undefined) return `refers to ${JSON.stringify(lost.slice(0, 100))}, which is not in it`;
    // References may lead to themselves, or double at every level.
    if (references.length > 0) boundedTwice(() => Schema.Check(schema, {}));
  } catch {
    return 'cannot be evaluated as a JSON Schema';
  }
  return undefined;
}

/** A machine that is busy for a moment is no fault of the schema. */
function boundedTwice(evaluate: () => unknown): void {
  try {
    bounded(evaluate);
  } catch {
    bounded(evaluate);
  }
}

const schema = { $ref: '#' };
const schemas = { type: 'array', items: schema, minItems: 1 };
const schemasByName = { type: 'object', additionalProperties: schema };
const strings = { type: 'array', items: { type: 'string' } };
const size = { type: 'integer', minimum: 0 };
const typeName = { enum: ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] };

/** What the keywords may hold; what stands beside them is data, and anything. */
const metaSchema = Schema.Compile({
  type: ['object', 'boolean'],
  properties: {
    $id: { type: 'string' },
    $ref: { type: 'string' },
    $dynamicRef: { type: 'string' },
    $anchor: { type: 'string' },
    $dynamicAnchor: { type: 'string' },
    $defs: schemasByName,
    definitions: schemasByName,
    title: { type: 'string' },
    description: { type: 'string' },
    type: { anyOf: [typeName, { type: 'array', items: typeName, minItems: 1 }] },
    enum: { type: 'array' },
    properties: schemasByName,
    patternProperties: schemasByName,
    dependentSchemas: schemasByName,
    dependentRequired: { type: 'object', additionalProperties: strings },
    required: strings,
    minProperties: size,
    maxProperties: size,
    additionalProperties: schema,
    unevaluatedProperties: schema,
    propertyNames: schema,
    items: { anyOf: [schema, { type: 'array', items: schema }] },
    prefixItems: schemas,
    contains: schema,
    additionalItems: schema,
    unevaluatedItems: schema,
    minItems: size,
    maxItems: size,
    minContains: size,
    maxContains: size,
    uniqueItems: { type: 'boolean' },
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: schema,
    if: schema,
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: schema,
    else: schema,
    pattern: { type: 'string' },
    format: { type: 'string' },
    minLength: size,
    maxLength: size,
    minimum: { type: 'number' },
    maximum: { type: 'number' },
    exclusiveMinimum: { type: ['number', 'boolean'] },
    exclusiveMaximum: { type: ['number', 'boolean'] },
    multipleOf: { type: 'number', exclusiveMinimum: 0 },
  },
});

function placeOfError(broken: Record<string, unknown>): string {
  const [, errors] = metaSchema.Errors(broken);
  const [error] = errors;
  if (!error?.instancePath) return '';
  const allowed = error.keyword === 'enum' ? (error.params.allowedValues as unknown[]) : undefined;
  const what = allowed ? `must be one of ${allowed.join(', ')}` : error.message;
  return `: ${error.instancePath.slice(0, 200)} ${what}`;
}

interface Parts {
  patterns: string[];
  references: string[];
  /** What can be referred to beside places by their path: names that the schema gives to its parts. */
  targets: Set<string>;
}

/** What stands in data (`const`, `enum` …) is none of it. */
function partsOf(node: unknown, parts: Parts = { patterns: [], references: [], targets: new Set() }): Parts {
  if (typeof node !== 'object' || node === null) return parts;
  for (const [keyword, value] of Object.entries(node)) {
    if (['const', 'enum', 'default', 'examples'].includes(keyword)) continue;
    if (keyword === 'pattern' && typeof value === 'string') parts.patterns.push(value);
    else if (keyword === 'patternProperties' && typeof value === 'object')
      parts.patterns.push(...Object.keys(value ?? {}));
    else if ((keyword === '$ref' || keyword === '$dynamicRef') && typeof value === 'string')
      parts.references.push(value);
    else if (keyword === '$id' && typeof value === 'string') parts.targets.add(value);
    else if ((keyword === '$anchor' || keyword === '$dynamicAnchor') && typeof value === 'string')
      parts.targets.add(`#${value}`);
    partsOf(value, parts);
  }
  return parts;
}

/** Whether `#/a/b` leads somewhere. */
function resolves(root: unknown, reference: string): boolean {
  if (reference === '#') return true;
  if (!reference.startsWith('#/')) return false;
  let node = root;
  for (const step of decodeURIComponent(reference.slice(2)).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return false;
    node = (node as Record<string, unknown>)[name];
  }
  return true;
}
