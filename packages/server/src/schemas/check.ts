// Checks a schema. One that is broken must be refused early: a model's provider refuses all tools for one bad schema.
//
// Schemas are of draft 2020-12; keywords of earlier drafts are recognized.

import { didYouMean } from '@signalbox/contract/nearest';
import Schema from 'typebox/schema';
import { SchemaDocument } from './document.ts';
import { requiredProblems } from './fit.ts';
import {
  ABOUT,
  DATA,
  FORMATS,
  isKnownKeyword,
  isObject,
  KEYWORDS,
  MAPS,
  OTHER_FORMATS,
  type SchemaObject,
  schemasIn,
} from './keywords.ts';
import { ownTypes } from './place.ts';
import type { Problem } from './problem.ts';

/**
 * What is refused in a schema, besides what is broken.
 *
 * - `foreign`: nothing more. An MCP server wrote it.
 * - `own`: keywords that would be ignored, with what to write instead; and properties that are required, but not declared.
 * - `rule`: keywords and formats that would be ignored. What the rule is about is another schema's (fit.ts).
 */
export type Strictness = 'foreign' | 'own' | 'rule';

/** More than anyone fixes at once. */
const MAX_PROBLEMS = 20;
/** Total length of a schema's patterns: compiling one can't be interrupted, and takes about 15 ms per 1,000 characters. */
const PATTERNS_MAX_CHARACTERS = 10_000;
/** The dialects that are evaluated correctly. */
const DIALECTS = /^https?:\/\/json-schema\.org\/(?:draft\/(?:2020-12|2019-09)|draft-0[67])\/schema#?$/;

/** Throws if the schema can't be evaluated. */
export function checkSchema(schema: SchemaObject, strictness: Strictness): Problem[] {
  const broken = (strictness === 'foreign' ? undefined : dialectProblem(schema)) ?? problemOf(schema);
  if (broken) return [{ path: '', message: broken }];
  if (strictness === 'foreign') return [];
  const problems = ignoredParts(schema, strictness);
  return [...problems, ...(strictness === 'own' ? requiredProblems(schema) : [])].slice(0, MAX_PROBLEMS);
}

function dialectProblem({ $schema }: SchemaObject): string | undefined {
  if (typeof $schema !== 'string' || DIALECTS.test($schema)) return undefined;
  const given = JSON.stringify($schema.slice(0, 100));
  return `has the $schema ${given}, which is not supported: write it for https://json-schema.org/draft/2020-12/schema`;
}

function problemOf(schema: SchemaObject): string | undefined {
  if (!metaSchema().Check(schema)) return `is not a JSON Schema${placeOfError(schema)}`;
  const wrong = patternProblem(patternsIn(schema, '', false));
  if (wrong) return wrong;
  const document = new SchemaDocument(schema);
  const lost = document.lostReference();
  if (lost !== undefined) return `refers to ${JSON.stringify(lost.slice(0, 100))}, which is not in it`;
  // Evaluates it once, because references may be circular, or double at every level.
  if (document.hasReferences) Schema.Check(schema, {});
  return undefined;
}

interface Pattern {
  /** From the schema's root, as in `/properties/name/pattern`. */
  path: string;
  pattern: string;
}

/** Also of parts that no keyword reaches, because a reference may. */
function patternsIn(node: unknown, path: string, isMap: boolean): Pattern[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([name, value]) => {
    const at = `${path}/${name}`;
    if (isMap) return patternsIn(value, at, false);
    if (DATA.has(name)) return [];
    if (name === 'pattern' && typeof value === 'string') return [{ path: at, pattern: value }];
    const inside = patternsIn(value, at, MAPS.has(name));
    if (name !== 'patternProperties' || !isObject(value)) return inside;
    return [...Object.keys(value).map((pattern) => ({ path: at, pattern })), ...inside];
  });
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

/** Keywords and formats that would be ignored, or evaluated with another meaning than their author's. */
function ignoredParts(schema: SchemaObject, strictness: Strictness): Problem[] {
  const problems: Problem[] = [];
  const visit = (node: SchemaObject, path: string): void => {
    for (const [keyword, value] of Object.entries(node)) {
      const message = ignoredKeyword(node, keyword, value, strictness);
      if (message !== undefined) problems.push({ path: `${path}${keyword}`, message });
      if (problems.length === MAX_PROBLEMS) return;
    }
    for (const { path: inner, schema: part } of schemasIn(node))
      if (isObject(part) && problems.length < MAX_PROBLEMS) visit(part, `${path}${inner}.`);
  };
  visit(schema, '');
  return problems;
}

function ignoredKeyword(
  node: SchemaObject,
  keyword: string,
  value: unknown,
  strictness: Strictness,
): string | undefined {
  if (!isKnownKeyword(keyword)) {
    const hint =
      didYouMean(keyword, KEYWORDS) || ' Properties belong in "properties"; keywords of your own start with "x-".';
    return `is not a keyword of JSON Schema.${hint}`;
  }
  if ((keyword === 'exclusiveMinimum' || keyword === 'exclusiveMaximum') && typeof value === 'boolean') {
    const limit = keyword === 'exclusiveMinimum' ? 'minimum' : 'maximum';
    const instead = `"${keyword}": ${JSON.stringify(node[limit] ?? 0)} instead of "${limit}"`;
    return `is true or false only in draft-04: write ${instead}`;
  }
  if (keyword === 'nullable' && value === true)
    return `is of OpenAPI 3.0: write "type": ${JSON.stringify([node.type ?? 'string', 'null'].flat())}`;
  if ((keyword === 'then' || keyword === 'else') && !('if' in node)) return 'has no effect without "if"';
  if (keyword === 'format') return ignoredFormat(String(value), strictness);
  const about = ABOUT[keyword];
  if (about === undefined || node.type === undefined) return undefined;
  const types = ownTypes({ type: node.type });
  const applies = about === 'number' ? types.has('integer') || types.has('fraction') : types.has(about);
  return applies ? undefined : `has no effect on ${JSON.stringify(node.type)}`;
}

/** A format is an annotation, unless it is one that is evaluated. In a rule, an annotation is a mistake. */
function ignoredFormat(format: string, strictness: Strictness): string | undefined {
  if (FORMATS.includes(format)) return undefined;
  const meant = didYouMean(format, FORMATS);
  if (strictness === 'rule') return `is not a format that is checked.${meant || ` There are ${FORMATS.join(', ')}.`}`;
  return meant === '' || OTHER_FORMATS.includes(format) ? undefined : `is not a format that is checked.${meant}`;
}

const schema = { $ref: '#' };
const schemas = { type: 'array', items: schema, minItems: 1 };
const schemasByName = { type: 'object', additionalProperties: schema };
const strings = { type: 'array', items: { type: 'string' } };
const size = { type: 'integer', minimum: 0 };
const typeName = { enum: ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] };

/** What the keywords may contain. Anything else in a schema is data, and not restricted. */
const keywords = {
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
};

let compiled: ReturnType<typeof Schema.Compile> | undefined;

/** Compiled with the first schema, not with the start. */
function metaSchema() {
  compiled ??= Schema.Compile(keywords);
  return compiled;
}

function placeOfError(broken: SchemaObject): string {
  const [, errors] = metaSchema().Errors(broken);
  const [error] = errors;
  if (!error?.instancePath) return '';
  const allowed = error.keyword === 'enum' ? (error.params.allowedValues as unknown[]) : undefined;
  const what = allowed ? `must be one of ${allowed.join(', ')}` : error.message;
  return `: ${error.instancePath.slice(0, 200)} ${what}`;
}
