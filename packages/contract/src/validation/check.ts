// What is wrong with a value, in the service's own words. It has a subpath of its own for programs that validate before they
// send, such as the console. The schema is interpreted, not compiled, so it also works where a page can't evaluate code.
import { Errors } from 'typebox/schema';
import type { SchemaObject } from '../components.ts';
import type { FieldError } from '../errors.ts';
import { sizeErrors } from '../size.ts';
import { INSTANT } from './instant.ts';
import { narrow } from './narrow.ts';
import { unknownField } from './unknown-field.ts';

export { isTooLarge } from '../size.ts';
export { INSTANT, isInstant } from './instant.ts';

const MAX_ERRORS = 20;

/** The message about a field that is missing. */
export const REQUIRED = 'is required';

/**
 * Every invalid field, once, with what is expected; empty if the value matches the schema.
 *
 * If there are several alternatives, only the one that the value means is reported. At most 20 errors, in time linear in the size of the
 * value: the library's own search for errors is quadratic, so it only sees values of an allowed size.
 */
export function fieldErrors(schema: object, value: unknown): FieldError[] {
  const tooLarge = sizeErrors(schema as SchemaObject, value, MAX_ERRORS);
  if (tooLarge.length > 0) return tooLarge;
  const narrowed = narrow(schema as SchemaObject, value);
  const [, found] = Errors(narrowed, value);
  const errors = new Map<string, FieldError>();
  // These repeat other errors: one for each unknown field, and one for all invalid names together.
  for (const error of found.filter(({ keyword }) => keyword !== 'boolean' && keyword !== 'propertyNames')) {
    for (const field of describeError(error, narrowed)) if (!errors.has(field.path)) errors.set(field.path, field);
  }
  // If a required field is misspelt, the misspelling explains more than that the field is missing.
  const isMisspelt = ({ message }: FieldError) => message.includes('Did you mean');
  return [...errors.values()].sort((a, b) => Number(isMisspelt(b)) - Number(isMisspelt(a))).slice(0, MAX_ERRORS);
}

interface SchemaError {
  keyword: string;
  instancePath: string;
  schemaPath: string;
  message: string;
  params: object;
}

function describeError(error: SchemaError, schema: SchemaObject): FieldError[] {
  const path = dotted(error.instancePath);
  const at = (name: string) => (path ? `${path}.${name}` : name);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return (params.requiredProperties as string[]).map((name) => ({ path: at(name), message: REQUIRED }));
    case 'additionalProperties':
      return (params.additionalProperties as string[]).map((name) => ({
        path: at(name),
        message: unknownField(name, schemaAt(schema, error.schemaPath)),
      }));
    case 'enum': {
      const { 'x-expected': expected } = schemaAt(schema, error.schemaPath);
      const values = (params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ');
      return [{ path, message: `must be ${values === '' ? expected : `one of ${values}`}` }];
    }
    case 'const':
      return [{ path, message: `must be ${JSON.stringify(params.allowedValue)}` }];
    case 'pattern':
      return [{ path, message: patternMessage(String(params.pattern), schemaAt(schema, error.schemaPath)) }];
    case 'minLength':
      // Clearer for an empty field than a number of characters.
      return [
        { path, message: params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} characters` },
      ];
    case 'maxLength':
      return [{ path, message: `must have at most ${params.limit} characters` }];
    case 'minimum':
      return [{ path, message: `must be at least ${params.limit}` }];
    case 'maximum':
      return [{ path, message: `must be at most ${params.limit}` }];
    case 'exclusiveMinimum':
      return [{ path, message: `must be more than ${params.limit}` }];
    case 'minItems':
      return [{ path, message: `must have at least ${counted(Number(params.limit), 'item')}` }];
    case 'maxItems':
      return [{ path, message: `must have at most ${counted(Number(params.limit), 'item')}` }];
    case 'minProperties':
      return [{ path, message: `must have at least ${counted(Number(params.limit), 'field')}` }];
    case 'maxProperties':
      return [{ path, message: `must have at most ${counted(Number(params.limit), 'field')}` }];
    case 'type':
      return [{ path, message: `must be ${[params.type].flat().map(describeType).join(' or ')}` }];
    case 'format':
      return [{ path, message: `must be ${INSTANT}` }];
    default:
      return [{ path, message: error.message }];
  }
}

const typeNames: Record<string, string> = {
  array: 'an array',
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function describeType(type: unknown): string {
  return typeNames[String(type)] ?? String(type);
}

/** In words, with the example from the contract: both are easier to read than a pattern. */
function patternMessage(pattern: string, { examples = [], 'x-expected': expected }: SchemaObject): string {
  const [given] = examples;
  const example = typeof given === 'string' ? JSON.stringify(given) : undefined;
  if (expected !== undefined) return example ? `must be ${expected}, such as ${example}` : `must be ${expected}`;
  return example ? `must look like ${example}` : `must match pattern "${pattern}"`;
}

/** The part of a schema at a path such as `#/properties/name`. */
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

function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
