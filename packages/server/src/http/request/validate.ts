// Checks a request against the contract: bodies strictly; values of paths and query strings, which are all text, are converted. A refusal
// names each wrong field and what it must be.
import type { FieldError, Route, SchemaObject } from '@signalbox/contract';
import { fieldErrors, isTooLarge, REQUIRED } from '@signalbox/contract/check';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';
import { ApiError } from '../../lib/api-error.ts';
import { MAX_JSON_DEPTH } from '../../lib/text.ts';

/** The parts of a request as the server parsed them. */
export interface RawInput {
  params: unknown;
  query: unknown;
  body: unknown;
}

/** Compiled once for each route. The function throws 400, or 404 for a path that can't name anything. */
export function validatorOf(route: Route): (raw: RawInput) => Record<string, unknown> {
  const params = route.params && Compile(route.params);
  const query = Compile(route.query ?? emptySchema);
  const body = route.body && Compile(route.body);
  // A missing body is treated as an empty object, if the route allows one.
  const bodyRequired = body !== undefined && !body.Check({});

  return (raw) => {
    if (params && !(params.Check(raw.params) && isText(raw.params))) {
      // PUT would create the resource, so its name is invalid input. For other methods no resource of this name can exist.
      if (route.method === 'PUT') refuse(route.params!, raw.params);
      throw new ApiError('not_found', 'Not found. Check that the ID is complete.');
    }
    const converted = route.query ? convertQuery(route.query, raw.query as Record<string, unknown>) : raw.query;
    refuseForbiddenText(converted);
    if (!query.Check(converted)) refuseErrors(fieldErrors(route.query ?? emptySchema, converted).map(inQuery));

    if (body && isTooLarge(route.body as SchemaObject, raw.body)) refuse(route.body!, raw.body);
    if (raw.body !== undefined && raw.body !== null) refuseForbiddenText(raw.body);
    if (!body) {
      if (raw.body !== undefined && raw.body !== null && !isEmptyObject(raw.body)) {
        throw new ApiError('invalid_request', 'This request takes no body.', {
          errors: [{ path: '', message: 'must be empty' }],
        });
      }
    } else if (raw.body === undefined && bodyRequired) {
      throw new ApiError('invalid_request', 'The request needs a JSON body.', {
        errors: [{ path: '', message: 'must be an object' }],
      });
    } else if (raw.body !== undefined && !body.Check(raw.body)) {
      refuse(route.body!, raw.body);
    }
    return { ...(raw.params as object), ...(converted as object), ...(raw.body as object | undefined) };
  };
}

/** Converts text to the types of the schema. What is not a plain decimal stays text and is refused: 1.5 must not become 1. */
function convertQuery(schema: TSchema, raw: Record<string, unknown>): Record<string, unknown> {
  const converted = Value.Convert(schema, structuredClone(raw)) as Record<string, unknown>;
  for (const [name, value] of Object.entries(converted)) {
    if (typeof value === 'number' && !/^-?\d+$/.test(String(raw[name]))) converted[name] = raw[name];
  }
  return converted;
}

const emptySchema = { type: 'object', additionalProperties: false } as TSchema;

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** The caller may have sent it in the body, or in a form. */
function inQuery({ path, message }: FieldError): FieldError {
  return { path, message: message === REQUIRED ? `${message} in the query` : message };
}

function refuse(schema: TSchema, value: unknown): never {
  refuseErrors(fieldErrors(schema, value));
}

function refuseErrors(list: FieldError[]): never {
  const [first] = list;
  throw new ApiError(
    'invalid_request',
    first ? `${first.path || 'body'}: ${first.message}` : 'The request is not valid.',
    {
      errors: list,
    },
  );
}

/** PostgreSQL can't store NUL, and a lone surrogate has no UTF-8 form: both would be lost, or fail later. */
function refuseForbiddenText(value: unknown): void {
  const wrong = forbiddenText(value, 0);
  if (wrong) throw new ApiError('invalid_request', `${wrong.path || 'body'}: ${wrong.message}`, { errors: [wrong] });
}

function isText(value: unknown): boolean {
  return forbiddenText(value, 0) === undefined;
}

/** The path is built only for the value that is wrong: a body may have hundreds of thousands of values. */
function forbiddenText(value: unknown, depth: number): FieldError | undefined {
  if (typeof value === 'string') {
    if (value.includes('\0')) return { path: '', message: 'must not contain the NUL character' };
    if (!value.isWellFormed()) return { path: '', message: 'must be well-formed Unicode (it has a lone surrogate)' };
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= MAX_JSON_DEPTH) return { path: '', message: `must not be nested deeper than ${MAX_JSON_DEPTH} levels` };
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const wrong = forbiddenText(value[index], depth + 1);
      if (wrong) return { ...wrong, path: pathOf(`[${index}]`, wrong.path) };
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (key.includes('\0') || !key.isWellFormed())
      return { path: '', message: 'has a field whose name is not valid text' };
    const wrong = forbiddenText((value as Record<string, unknown>)[key], depth + 1);
    if (wrong) return { ...wrong, path: pathOf(key, wrong.path) };
  }
  return undefined;
}

function pathOf(step: string, inner: string): string {
  return inner === '' || inner.startsWith('[') ? step + inner : `${step}.${inner}`;
}
