// Checks a schema, or validates a value against one, without a time limit: threads.ts stops it, and schemas.ts decides what needs no
// thread.
//
// Schemas are of draft 2020-12; keywords of earlier drafts are recognized. A broken schema must be refused early: a model's
// provider refuses all tools for one bad schema.
import Schema from 'typebox/schema';

/** A schema to check, or a value to validate against it. Both are JSON texts, as they are passed to a thread. */
export interface Task {
  readonly schema: string;
  readonly value?: string;
  /** Without a value: whether keywords of earlier drafts and OpenAPI that would be ignored are refused. */
  readonly strict?: boolean;
}

/** The problem, as text; undefined if there is none; null if it can't be evaluated: it is not known whether there is one. */
export type Outcome = string | undefined | null;

export function judge({ schema, value, strict = false }: Task): Outcome {
  try {
    const parsed = JSON.parse(schema) as Record<string, unknown>;
    return value === undefined ? problemOf(parsed, strict) : errorsOf(parsed, JSON.parse(value));
  } catch {
    // A regular expression can exhaust the stack of its engine long before the time is over.
    return null;
  }
}

// Validation of a value

const MAX_ERRORS = 5;
const MAX_NAMED = 20;

function errorsOf(schema: Record<string, unknown>, value: unknown): string | undefined {
  const [ok, errors] = Schema.Errors(schema, value);
  if (ok) return undefined;
  // If a `false` schema refuses fields, the error of the keyword that contains it covers all of them.
  const specific = errors.filter(({ keyword }) => keyword !== 'boolean');
  return (specific.length > 0 ? specific : errors)
    .slice(0, MAX_ERRORS)
    .map((error) => `${error.instancePath || '/'} ${messageOf(error)}`)
    .join('; ');
}

/** With the names or values that it is about, if there are few. */
function messageOf({ message, params }: { message: string; params: object }): string {
  const { additionalProperties, allowedValues } = params as Record<string, unknown[] | undefined>;
  if (additionalProperties && additionalProperties.length <= MAX_NAMED)
    return `${message}: ${additionalProperties.join(', ')}`;
  if (allowedValues && allowedValues.length <= MAX_NAMED)
    return `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`;
  return message;
}

// Check of a schema

/** Total length of a schema's patterns: compiling one can't be interrupted, and takes about 15 ms per 1,000 characters. */
const PATTERNS_MAX_CHARACTERS = 10_000;
/** The dialects that are evaluated correctly. */
const DIALECTS = /^https?:\/\/json-schema\.org\/(?:draft\/(?:2020-12|2019-09)|draft-0[67])\/schema#?$/;

function problemOf(schema: Record<string, unknown>, strict: boolean): string | undefined {
  const parts = schemaParts(schema);
  const early = strict ? dialectProblem(schema, parts) : undefined;
  if (early) return early;
  if (!metaSchema.Check(schema)) return `is not a JSON Schema${placeOfError(schema)}`;
  const wrong = patternProblem(parts.patterns);
  if (wrong) return wrong;
  const { references, targets } = parts;
  const lost = references.find(({ reference, base }) => !targets.has(reference) && !resolves(base, reference));
  if (lost) return `refers to ${JSON.stringify(lost.reference.slice(0, 100))}, which is not in it`;
  // Evaluates it once, because references may be circular, or double at every level.
  if (references.length > 0) Schema.Check(schema, {});
  return undefined;
}

/** Keywords that would be ignored, or evaluated with another meaning than their author's. */
function dialectProblem({ $schema }: Record<string, unknown>, { others }: Parts): string | undefined {
  if (typeof $schema === 'string' && !DIALECTS.test($schema)) {
    const given = JSON.stringify($schema.slice(0, 100));
    return `has the $schema ${given}, which is not supported: write it for https://json-schema.org/draft/2020-12/schema`;
  }
  return others[0];
}

function patternProblem(patterns: readonly Pattern[]): string | undefined {
  const characters = patterns.reduce((sum, { pattern }) => sum + pattern.length, 0);
  if (characters > PATTERNS_MAX_CHARACTERS)
    return `has patterns of more than ${PATTERNS_MAX_CHARACTERS} characters in total`;
  for (const { path, pattern } of patterns) {
    try {
      new RegExp(pattern, 'u');
    } catch (error) {
      const [, why = ''] = /: ([^:]*)$/.exec((error as Error).message) ?? [];
      return `has a pattern at ${path.slice(0, 200)} that is not a regular expression: ${why}`;
    }
  }
  return undefined;
}

const schema = { $ref: '#' };
const schemas = { type: 'array', items: schema, minItems: 1 };
const schemasByName = { type: 'object', additionalProperties: schema };
const strings = { type: 'array', items: { type: 'string' } };
const size = { type: 'integer', minimum: 0 };
const typeName = { enum: ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] };

/** What the keywords may contain. Anything else in a schema is data, and not restricted. */
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

interface Pattern {
  /** From the schema's root, as in `/properties/name/pattern`. */
  path: string;
  pattern: string;
}

interface Parts {
  patterns: Pattern[];
  /** With the part that they are relative to: the innermost around them with an `$id`, or the whole schema. */
  references: { reference: string; base: object }[];
  /** What can be referred to other than by a path: names that the schema gives to its parts. */
  targets: Set<string>;
  /** Problems with keywords of another dialect, with what to write instead. */
  others: string[];
}

/** Their values are objects whose keys the author chose, not keywords. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);
/** Their values are data, even if they look like schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'example']);

function schemaParts(root: Record<string, unknown>): Parts {
  const parts: Parts = { patterns: [], references: [], targets: new Set(), others: [] };
  const visit = (node: unknown, path: string, isMap: boolean, around: object): void => {
    if (typeof node !== 'object' || node === null) return;
    const base = !isMap && '$id' in node ? node : around;
    for (const [name, value] of Object.entries(node)) {
      const at = `${path}/${name}`;
      if (isMap) {
        visit(value, at, false, base);
      } else if (!DATA.has(name)) {
        addPart(parts, node, path, name, value, base);
        visit(value, at, MAPS.has(name), base);
      }
    }
  };
  visit(root, '', false, root);
  return parts;
}

function addPart(parts: Parts, node: object, path: string, keyword: string, value: unknown, base: object): void {
  const place = path === '' ? '/' : path.slice(0, 200);
  if (keyword === 'pattern' && typeof value === 'string') {
    parts.patterns.push({ path: `${path}/pattern`, pattern: value });
  } else if (keyword === 'patternProperties' && typeof value === 'object') {
    const names = Object.keys(value ?? {});
    parts.patterns.push(...names.map((pattern) => ({ path: `${path}/patternProperties`, pattern })));
  } else if ((keyword === '$ref' || keyword === '$dynamicRef') && typeof value === 'string') {
    parts.references.push({ reference: value, base });
  } else if (keyword === '$id' && typeof value === 'string') {
    parts.targets.add(value);
  } else if ((keyword === '$anchor' || keyword === '$dynamicAnchor') && typeof value === 'string') {
    parts.targets.add(`#${value}`);
  } else if ((keyword === 'exclusiveMinimum' || keyword === 'exclusiveMaximum') && typeof value === 'boolean') {
    const limit = keyword === 'exclusiveMinimum' ? 'minimum' : 'maximum';
    const { [limit]: number = 0 } = node as Record<string, unknown>;
    const instead = `"${keyword}": ${JSON.stringify(number)} instead of "${limit}"`;
    parts.others.push(`has "${keyword}": ${value} at ${place}, which draft-04 wrote so: write ${instead}`);
  } else if (keyword === 'nullable' && value === true) {
    const { type = 'string' } = node as { type?: unknown };
    const instead = `"type": ${JSON.stringify([type, 'null'].flat())}`;
    parts.others.push(`has "nullable": true at ${place}, which OpenAPI 3.0 wrote so: write ${instead}`);
  }
}

/** Whether the reference `#/a/b` has a target. */
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
