// Checks what came in against the contract: strictly for bodies, converting for paths and query strings, whose values are
// all text. A refusal names each field and says what would be right.
import type { FieldError, Route, SchemaObject } from '@signalbox/contract';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import Schema from 'typebox/schema';
import { Value } from 'typebox/value';
import { ApiError } from '../lib/api-error.ts';
import { MAX_JSON_DEPTH } from '../lib/text.ts';
import { narrow } from './narrow.ts';

/** What a request brought, as the server parsed it. */
export interface RawInput {
  params: unknown;
  query: unknown;
  body: unknown;
}

const MAX_ERRORS = 20;

/** Compiled once a route. The function throws 400, or 404 for a path that can name nothing. */
export function validatorOf(route: Route): (raw: RawInput) => Record<string, unknown> {
  const params = route.params && Compile(route.params);
  const query = Compile(route.query ?? emptySchema);
  const body = route.body && Compile(route.body);
  const bodyRequired = route.body !== undefined && !acceptsNothing(route.body);

  return (raw) => {
    if (params && !(params.Check(raw.params) && isText(raw.params))) {
      // PUT would make what the path names, so the name itself is wrong; elsewhere nothing of this name can be there.
      if (route.method === 'PUT') refuse(route.params!, raw.params);
      throw new ApiError('not_found', 'Nothing has this path. Is the identifier whole?');
    }
    const converted = route.query ? convertQuery(route.query, raw.query as Record<string, unknown>) : raw.query;
    refuseForbiddenText(converted);
    if (!query.Check(converted)) refuse(route.query ?? emptySchema, converted);

    if (raw.body !== undefined && raw.body !== null) refuseForbiddenText(raw.body);
    if (!body) {
      if (raw.body !== undefined && raw.body !== null && !isEmptyObject(raw.body)) {
        throw new ApiError('invalid_request', 'This request takes no body.', {
          errors: [{ path: '', message: 'must be empty' }],
        });
      }
    } else if (raw.body === undefined && bodyRequired) {
      throw new ApiError('invalid_request', 'A JSON body is needed.', {
        errors: [{ path: '', message: 'must be an object' }],
      });
    } else if (raw.body !== undefined && !body.Check(raw.body)) {
      refuse(route.body!, raw.body);
    }
    return { ...(raw.params as object), ...(converted as object), ...(raw.body as object | undefined) };
  };
}

/** Text to what the schema asks for. What is no plain decimal stays text, and is refused as such: 1.5 is no limit of 1. */
function convertQuery(schema: TSchema, raw: Record<string, unknown>): Record<string, unknown> {
  const converted = Value.Convert(schema, structuredClone(raw)) as Record<string, unknown>;
  for (const [name, value] of Object.entries(converted)) {
    if (typeof value === 'number' && !/^-?\d+$/.test(String(raw[name]))) converted[name] = raw[name];
  }
  return converted;
}

const emptySchema = { type: 'object', additionalProperties: false } as TSchema;

function acceptsNothing(schema: TSchema): boolean {
  const { required } = schema as { required?: string[] };
  return !required || required.length === 0;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

interface SchemaError {
  keyword: string;
  instancePath: string;
  schemaPath: string;
  message: string;
  params: object;
}

function refuse(schema: TSchema, value: unknown): never {
  const narrowed = narrow(schema as SchemaObject, value);
  const [, found] = Schema.Errors(narrowed, value);
  const errors = new Map<string, FieldError>();
  // The same once more, said of each field that is not known, or of all names that are not allowed together.
  for (const error of found.filter(({ keyword }) => keyword !== 'boolean' && keyword !== 'propertyNames')) {
    for (const field of fieldErrors(error, narrowed)) if (!errors.has(field.path)) errors.set(field.path, field);
  }
  const list = [...errors.values()].slice(0, MAX_ERRORS);
  const [first] = list;
  throw new ApiError(
    'invalid_request',
    first ? `${first.path || 'body'}: ${first.message}` : 'The request is not valid.',
    {
      errors: list,
    },
  );
}

function fieldErrors(error: SchemaError, schema: SchemaObject): FieldError[] {
  const path = dotted(error.instancePath);
  const at = (name: string) => (path ? `${path}.${name}` : name);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return (params.requiredProperties as string[]).map((name) => ({ path: at(name), message: 'is required' }));
    case 'additionalProperties':
      return (params.additionalProperties as string[]).map((name) => ({
        path: at(name),
        message: 'is not a known field',
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
      return [{ path, message: `must have at least ${params.limit} character${params.limit === 1 ? '' : 's'}` }];
    case 'maxLength':
      return [{ path, message: `must have at most ${params.limit} characters` }];
    case 'format':
      return [{ path, message: 'must be an ISO 8601 instant such as 2026-01-31T09:30:00.000Z' }];
    default:
      return [{ path, message: error.message }];
  }
}

// Beyond it a pattern explains nothing that the example does not.
const LONGEST_SHOWN_PATTERN = 100;

/** With the example that the contract has for the field: that is quicker to read than a pattern. */
function patternMessage(pattern: string, { examples }: SchemaObject): string {
  const match = `must match pattern "${pattern}"`;
  const [example] = examples ?? [];
  if (typeof example !== 'string') return match;
  const such = `such as ${JSON.stringify(example)}`;
  return pattern.length > LONGEST_SHOWN_PATTERN ? `must be ${such}` : `${match}, ${such}`;
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

/** PostgreSQL stores no NUL, and no lone surrogate has a UTF-8 form: both would be lost or fail later. */
function refuseForbiddenText(value: unknown): void {
  const wrong = forbiddenText(value, '', 0);
  if (wrong) throw new ApiError('invalid_request', `${wrong.path || 'body'}: ${wrong.message}`, { errors: [wrong] });
}

function isText(value: unknown): boolean {
  return forbiddenText(value, '', 0) === undefined;
}

function forbiddenText(value: unknown, path: string, depth: number): FieldError | undefined {
  if (typeof value === 'string') {
    if (value.includes('\0')) return { path, message: 'must not contain the NUL character' };
    if (!value.isWellFormed()) return { path, message: 'must be well-formed Unicode (it has a lone surrogate)' };
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= MAX_JSON_DEPTH) return { path, message: `must not be nested deeper than ${MAX_JSON_DEPTH} levels` };
  for (const [key, inner] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
    if (key.includes('\0') || !key.isWellFormed()) return { path, message: 'has a field whose name is not valid text' };
    const wrong = forbiddenText(inner, at, depth + 1);
    if (wrong) return wrong;
  }
  return undefined;
}
