// What is wrong with a value, in the words in which the service refuses it. A subpath of its own, for who shows the same before
// anything is sent. The schema is read as it is and not compiled: that also works where a page may evaluate no code.
import { Errors } from 'typebox/schema';
import type { SchemaObject } from '../components.ts';
import type { FieldError } from '../errors.ts';
import { sizeErrors, unknownField } from '../size.ts';
import { narrow } from './narrow.ts';

const MAX_ERRORS = 20;

/**
 * Every field that is wrong, once, with what would be right; empty where the value is as the schema says.
 *
 * Of alternatives only the one that the value means has a word to say. At most 20, and in time that grows with the value no
 * faster than its length: the library's own search for errors is quadratic, so it only sees what has an allowed size.
 */
export function fieldErrors(schema: object, value: unknown): FieldError[] {
  const tooLarge = sizeErrors(schema as SchemaObject, value, MAX_ERRORS);
  if (tooLarge.length > 0) return tooLarge;
  const narrowed = narrow(schema as SchemaObject, value);
  const [, found] = Errors(narrowed, value);
  const errors = new Map<string, FieldError>();
  // The same once more, said of each field that is not known, or of all names that are not allowed together.
  for (const error of found.filter(({ keyword }) => keyword !== 'boolean' && keyword !== 'propertyNames')) {
    for (const field of wordsOf(error, narrowed)) if (!errors.has(field.path)) errors.set(field.path, field);
  }
  return [...errors.values()].slice(0, MAX_ERRORS);
}

interface SchemaError {
  keyword: string;
  instancePath: string;
  schemaPath: string;
  message: string;
  params: object;
}

function wordsOf(error: SchemaError, schema: SchemaObject): FieldError[] {
  const path = dotted(error.instancePath);
  const at = (name: string) => (path ? `${path}.${name}` : name);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return (params.requiredProperties as string[]).map((name) => ({ path: at(name), message: 'is required' }));
    case 'additionalProperties':
      return (params.additionalProperties as string[]).map((name) => ({
        path: at(name),
        message: unknownField(schemaAt(schema, error.schemaPath)),
      }));
    case 'enum':
      return [
        {
          path,
          message: `must be one of ${(params.allowedValues as unknown[]).map((v) => JSON.stringify(v)).join(', ')}`,
        },
      ];
    case 'const':
      return [{ path, message: `must be ${JSON.stringify(params.allowedValue)}` }];
    case 'pattern':
      return [{ path, message: patternMessage(String(params.pattern), schemaAt(schema, error.schemaPath)) }];
    case 'minLength':
      // Who left a field empty is told that, not to count.
      return [
        { path, message: params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} characters` },
      ];
    case 'maxLength':
      return [{ path, message: `must have at most ${params.limit} characters` }];
    case 'minimum':
      return [{ path, message: `must be at least ${params.limit}` }];
    case 'maximum':
      return [{ path, message: `must be at most ${params.limit}` }];
    case 'type':
      return [{ path, message: `must be ${[params.type].flat().map(typeWords).join(' or ')}` }];
    case 'format':
      return [{ path, message: 'must be an ISO 8601 instant with its offset or Z, such as 2026-01-31T09:30:00.000Z' }];
    default:
      return [{ path, message: error.message }];
  }
}

const words: Record<string, string> = {
  array: 'an array',
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function typeWords(type: unknown): string {
  return words[String(type)] ?? String(type);
}

/** In words, and with the example that the contract has for the field: both are quicker to read than a pattern. */
function patternMessage(pattern: string, { examples = [], 'x-expected': expected }: SchemaObject): string {
  const [given] = examples;
  const example = typeof given === 'string' ? JSON.stringify(given) : undefined;
  if (expected !== undefined) return example ? `must be ${expected}, such as ${example}` : `must be ${expected}`;
  return example ? `must look like ${example}` : `must match pattern "${pattern}"`;
}

/** The part of a schema that a path such as `#/properties/name` leads to. */
function schemaAt(schema: SchemaObject, path: string): SchemaObject {
  return partsOf(path).reduce((part, key) => (part[key] ?? {}) as SchemaObject, schema);
}

function partsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** `/tools/0/name` → `tools[0].name`. */
function dotted(pointer: string): string {
  return partsOf(pointer).reduce(
    (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part),
    '',
  );
}
