// Checks a request against the contract: bodies strictly; values of paths and query strings, which are all text, are converted. A refusal
// names each wrong field and what it must be.
import type { FieldError, Route, SchemaObject } from '@signalbox/contract';
import { fieldErrors, isTooLarge, REQUIRED } from '@signalbox/contract/check';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { ApiError } from '../../lib/api-error.ts';
import { compiled } from './compiled.ts';
import { isFaithful, requireFaithfulValue } from './json-value.ts';

/** The parts of a request as the server parsed them. */
export interface RawInput {
  params: unknown;
  query: unknown;
  body: unknown;
}

type Validate = (raw: RawInput) => Record<string, unknown>;

/**
 * The function throws 400, or 404 for a path that can't name anything. It compiles the route's schemas when it is first called: those of
 * all routes take an eighth of a start, and most nodes never get a request for most routes.
 */
export function validatorOf(route: Route): Validate {
  let validate: Validate | undefined;
  return (raw) => {
    validate ??= compile(route);
    return validate(raw);
  };
}

function compile(route: Route): Validate {
  const params = route.params && compiled(route.params);
  const query = compiled(route.query ?? emptySchema);
  const body = route.body && compiled(route.body);
  // A missing body is treated as an empty object, if the route allows one.
  const bodyRequired = body !== undefined && !body.Check({});

  return (raw) => {
    if (params && !(params.Check(raw.params) && isFaithful(raw.params))) {
      // PUT would create the resource, so its name is invalid input. For other methods no resource of this name can exist.
      if (route.method === 'PUT') refuse(route.params!, raw.params);
      const [wrong] = fieldErrors(route.params, raw.params);
      throw new ApiError('not_found', `Not found: ${wrong ? `${wrong.path} ${wrong.message}` : 'check the path'}.`);
    }
    const converted = route.query ? convertQuery(route.query, raw.query as Record<string, unknown>) : raw.query;
    requireFaithfulValue(converted);
    if (!query.Check(converted)) refuseErrors(fieldErrors(route.query ?? emptySchema, converted).map(inQuery));

    if (body && isTooLarge(route.body as SchemaObject, raw.body)) refuse(route.body!, raw.body);
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
