// The OpenAPI 3.1 document, from the same table that the server runs on. Titled schemas of the contract are its
// components. It also has permissions, error codes, examples and second paths, so the reference page needs nothing else.
import {
  collectComponents,
  deliveryHeaders,
  Envelope,
  type ErrorCode,
  errorCodes,
  type Permission,
  Problem,
  permissionOf,
  permissions,
  type Route,
  replayWindowSeconds,
  type SchemaObject,
  type Scope,
  scopesOf,
  standardHeaders,
  type TokenScope,
} from '@signalbox/contract';
import { Value } from 'typebox/value';
import { bodyExamples } from './body-examples.ts';
import { typescriptSample } from './code-samples.ts';
import { codesOf } from './codes.ts';
import { description } from './description.ts';
import { headersOf } from './headers.ts';
import { descriptionOf } from './operation-description.ts';
import { resourceExamples } from './resource-examples.ts';
import { problemExample, responseExample } from './response-examples.ts';

export interface OpenApiDocument {
  openapi: string;
  info: Record<string, unknown> & { title: string; version: string; description: string };
  servers: { url: string; description: string }[];
  tags: { name: string; description: string }[];
  security: Record<string, string[]>[];
  paths: Record<string, Record<string, Operation>>;
  /** What the service sends to the addresses of subscribers. */
  webhooks: Record<string, { post: Webhook }>;
  components: Record<string, Record<string, unknown>> & { schemas: Record<string, SchemaObject> };
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  /** The least permission that the caller needs; none for the operator, who has no permissions. */
  'x-permission'?: Permission;
  /** The scope that the caller needs: OpenAPI 3.1 allows names of roles here for every type of scheme. */
  security: [{ apiKey: Scope[] }, ...{ sessionToken: TokenScope[] }[]] | [{ operatorToken: [] }];
  /** The same operation at another path. */
  'x-also-at'?: string;
  /** Every `code` that an error of this operation can have. */
  'x-error-codes': ErrorCode[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, ResponseObject>;
  'x-codeSamples'?: { lang: string; label: string; source: string }[];
}

interface Webhook {
  operationId: string;
  summary: string;
  description: string;
  parameters: Parameter[];
  requestBody: { required: boolean; content: Content };
  responses: Record<string, ResponseObject>;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: SchemaObject;
  style?: 'deepObject';
  explode?: boolean;
}

type Content = Record<
  string,
  { schema: SchemaObject; example?: unknown; examples?: Record<string, { $ref: string } | { value: unknown }> }
>;

interface ResponseObject {
  $ref?: string;
  description: string;
  headers?: Record<string, unknown>;
  content?: Content;
}

const PREFIX = '/api/v1';

/** In the order of the reference. */
const tags: Record<string, string> = {
  Agents: 'A model, instructions and tools, in immutable versions.',
  Sessions: 'Runs of an agent: turns, messages, and the journal of everything that was shown.',
  Approvals: 'Tool calls that wait for approval before they run.',
  Files: 'Images, documents and other bytes that messages can name, uploaded or created by tools.',
  'Session tokens':
    'Credentials for the browsers of your end users. A token reaches one session, or the sessions of one end user, and nothing else.',
  'End users': 'The people for whom sessions are, by ids of your own.',
  Schedules: 'Sessions that the service opens at set times: repeatedly by a cron expression, or once.',
  'Webhook subscriptions': 'Chunks of sessions, signed and delivered to your URL. One subscription per environment.',
  Destinations:
    'Records of the event log, signed and delivered to your URLs as they are written: approvals that wait, failures, budgets.',
  'Worker turns':
    "Steps of agents whose model is `worker`, run by your own program. The client's `workers.run` does all of this.",
  Environments:
    'Named scopes for sessions, webhook subscriptions and secrets; `production` and `staging` exist from the start.',
  'API keys':
    'Who can call the API, and with what permission. A secret is shown in plain text once, when it is created.',
  Usage: 'Tokens, model calls and their cost, over all sessions.',
  Budgets: 'What sessions should cost in a day or a month, with alerts, and optionally a stop.',
  Analytics: 'Sessions, turns, errors, latencies, deliveries and cost over time.',
  Overview: 'Counts of what is happening now.',
  Organizations:
    'The tenants of an installation, each with people, keys and data of its own: only for its operator, with the token of `SIGNALBOX_OPERATOR_TOKEN`.',
  'Event log': 'Who changed what in the organization, in one chain without gaps.',
  People:
    'Who can sign in to the console, and the links that admit them: only for signed-in users. API keys can read the organization and set the origins of its web pages.',
};

/**
 * Describes `routes`. The result is plain JSON, the same for the same routes and version.
 *
 * @throws Error if two different schemas of the contract have one title
 */
export function openApiDocument(routes: Record<string, Route>, version: string): OpenApiDocument {
  const { refer, schemas } = collectComponents();
  const problem = refer(Problem);

  const paths: OpenApiDocument['paths'] = {};
  for (const [name, route] of Object.entries(routes)) {
    const path = PREFIX + route.path;
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(name, route);
  }

  function operation(operationId: string, route: Route): Operation {
    return {
      operationId,
      tags: [route.tag],
      summary: route.summary,
      description: descriptionOf(route),
      ...(route.byOperator
        ? { security: [{ operatorToken: [] }] }
        : {
            'x-permission': permissionOf(route),
            security: [{ apiKey: scopesOf(route) }, ...(route.token ? [{ sessionToken: [route.token] }] : [])],
          }),
      ...(route.alsoAtRoot && { 'x-also-at': route.path }),
      parameters: [...parametersIn('path', route.params), ...parametersIn('query', route.query), ...headersOf(route)],
      ...(route.body && {
        requestBody: {
          required: !Value.Check(route.body, {}),
          content: {
            'application/json': {
              schema: refer(route.body),
              example: bodyExamples[operationId as keyof typeof bodyExamples],
            },
          },
        },
      }),
      ...(route.upload && {
        requestBody: {
          required: true,
          content: {
            '*/*': { schema: { type: 'string', format: 'binary' } },
            'multipart/form-data': {
              schema: {
                type: 'object',
                properties: { file: { type: 'string', format: 'binary' } },
                required: ['file'],
              },
            },
          },
        },
      }),
      'x-error-codes': codesOf(route),
      responses: { ...successOf(operationId, route), ...errorsOf(route, problem) },
      // The client calls with a key, so it has no method for the operator.
      ...(!route.byOperator && {
        'x-codeSamples': [{ lang: 'typescript', label: 'TypeScript', source: typescriptSample(operationId, route) }],
      }),
    };
  }

  function parametersIn(place: 'path' | 'query', schema: object | undefined): Parameter[] {
    const { properties = {}, required = [] } = (schema ?? {}) as SchemaObject;
    return Object.entries(properties).map(([name, property]) => {
      const { description: text, ...rest } = refer(property);
      return {
        name,
        in: place,
        required: place === 'path' || required.includes(name),
        ...(text !== undefined && { description: text }),
        ...(rest.type === 'object' && { style: 'deepObject' as const, explode: true }),
        schema: rest,
      };
    });
  }

  function successOf(operationId: string, route: Route): Record<string, ResponseObject> {
    const headers = {
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
      ...(route.method === 'POST' && { 'Idempotent-Replayed': { $ref: '#/components/headers/Idempotent-Replayed' } }),
    };
    const schema = refer(named(operationId, route.result as SchemaObject));
    const example = route.stream === 'content' ? undefined : responseExample(operationId, route);
    if (!route.stream) {
      const text = { 200: 'Done.', 201: 'Created.', 202: 'Accepted; it is carried out later.' }[route.status];
      // The stream that some of them can send instead is only in their description: with two media types under one status, the
      // generated clients type the result as either, so that a plain call needs a check of what it got.
      const content = { 'application/json': { schema, example } };
      return { [route.status]: { description: text, headers, content } };
    }
    if (route.stream === 'export') {
      return {
        200: {
          description:
            'A file. `jsonl`: one of these per line, which `signalbox events verify` can check. `csv`: the same as a table with a header line. If the connection is cut, the file is incomplete.',
          headers,
          content: { 'application/jsonl': { schema, example }, 'text/csv': { schema: { type: 'string' } } },
        },
      };
    }
    if (route.stream === 'content') {
      const content = { 'application/octet-stream': { schema: refer(route.result) } };
      return {
        200: { description: 'The whole content, with its own `Content-Type`.', headers, content },
        206: { description: 'The requested range, with `Content-Range`.', headers, content },
        304: { description: 'The client has the content already (`If-None-Match`).', headers },
      };
    }
    const events =
      'Server-Sent Events: `id` is the cursor, `event` is `session.chunks`, `data` is an Envelope. A comment line is sent every 10 s.';
    const content = { 'text/event-stream': { schema, example } };
    if (operationId === 'streamEnvironment') {
      return { 200: { description: `${events} An \`id\` without data moves the cursor.`, headers, content } };
    }
    return {
      200: { description: `${events} The stream ends after the terminal status.`, headers, content },
      204: { description: 'The session has ended and nothing follows this cursor: do not reconnect.', headers },
    };
  }

  const envelope = refer(Envelope);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Signalbox',
      version,
      description: description(),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This service.' }],
    tags: Object.entries(tags).map(([name, text]) => ({ name, description: text })),
    security: [{ apiKey: [] }],
    paths,
    webhooks: { 'session.chunks': { post: delivery(envelope) } },
    components: {
      examples: problemExamples(),
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: `An API key's secret, \`sbk_…\`. What it can do is decided by its scopes: the scopes of its permission (${permissions.join(', ')}), or the ones that it was given one by one.`,
        },
        operatorToken: {
          type: 'http',
          scheme: 'bearer',
          description:
            'The token of `SIGNALBOX_OPERATOR_TOKEN`, which the operator of the installation sets. It opens the operations that list it, and nothing else; no API key, session token or sign-in opens them.',
        },
        sessionToken: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A session token, `sbt_…`, of an end user. It reaches its own sessions, and only the operations that list it; every other one is 404 `not_found`.',
        },
      },
      headers: {
        'X-Request-Id': {
          description: 'Identifies this request in the log, in the event log and in the body of an error.',
          required: true,
          schema: { type: 'string', pattern: '^req_' },
        },
        'Idempotent-Replayed': {
          description:
            '`true` if this is the stored response of the first request with this idempotency key. A `requestId` in its body is that of the first request.',
          schema: { type: 'string', const: 'true' },
        },
        'WWW-Authenticate': { schema: { type: 'string', const: 'Bearer' } },
        'Retry-After': {
          description: 'Seconds to wait before you retry the request.',
          schema: { type: 'integer', minimum: 0 },
        },
      },
    },
  };
}

/** Gives a body the title from which generators name its class: `SessionResult`, `SessionList`, otherwise after the operation. */
function named(operationId: string, result: SchemaObject): SchemaObject {
  if (result.title !== undefined) return result;
  const [[field, value] = [], ...others] = Object.entries(result.properties ?? {});
  const item = result.properties?.data?.items?.title;
  const isList = item !== undefined && result.properties?.page !== undefined;
  const single = field !== undefined && others.length === 0 ? value?.title : undefined;
  const own = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Result`;
  return { ...result, title: isList ? `${item}List` : single === undefined ? own : `${single}Result` };
}

/** The error responses of a route: each status with its codes, and an example of each. */
function errorsOf(route: Route, problem: SchemaObject): Record<string, ResponseObject> {
  const byStatus = Map.groupBy(codesOf(route), (code) => errorCodes[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${errorCodes[code][1]}.`).join(' '),
        headers: {
          'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
          ...(status === 401 && { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } }),
          ...((status === 429 || status === 503) && { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }),
        },
        content: {
          'application/problem+json': {
            schema: problem,
            examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
          },
        },
      },
    ]),
  );
}

function problemExamples(): Record<string, { summary: string; value: unknown }> {
  const codes = Object.keys(errorCodes) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, { summary: errorCodes[code][1], value: problemExample(code) }]));
}

function delivery(envelope: SchemaObject): Webhook {
  const header = (name: string, text: string, schema: SchemaObject = { type: 'string' }): Parameter => ({
    name: name.replace(/(^|-)([a-z])/g, (letter) => letter.toUpperCase()).replace(/^Webhook-.*/, name),
    in: 'header',
    required: true,
    description: text,
    schema,
  });
  return {
    operationId: 'sessionChunks',
    summary: 'Chunks of a session, delivered to a subscriber',
    description: `\`${header(deliveryHeaders.signature, '').name}\` is HMAC-SHA256, in lowercase hexadecimal, of \`<timestamp>.<raw body>\`: the value of \`${header(deliveryHeaders.timestamp, '').name}\`, a dot, and the raw bytes of the body. The key is the UTF-8 bytes of the whole signing secret, including \`whsec_\`.

A receiver parses the timestamp as an integer and refuses it if it is more than ${replayWindowSeconds} seconds from its own clock. It computes the HMAC over the raw bytes and compares it in constant time. It responds with 401 if this fails, otherwise with 200 and a JSON acknowledgement. During the grace period after a rotation it accepts the old secret and the new one.

Deliveries of a session are sent in order, one at a time, and at least once: recognize duplicates by the delivery id or the cursor. Any 2xx within 15 seconds counts as received; anything else is retried with the same body and a new timestamp and signature. Redirects are not followed.`,
    parameters: [
      header(deliveryHeaders.timestamp, 'When it was dispatched, in epoch seconds.', { type: 'integer' }),
      header(deliveryHeaders.signature, 'As above.', { type: 'string', pattern: '^[0-9a-f]{64}$' }),
      header(deliveryHeaders.deliveryId, 'The same on every attempt.', { type: 'string', pattern: '^whd_' }),
      header(deliveryHeaders.attempt, 'Counts from 1.', { type: 'integer', minimum: 1 }),
      header(deliveryHeaders.secretVersion, 'The version of the secret that signed.', { type: 'integer', minimum: 1 }),
      header(
        deliveryHeaders.previousCursor,
        'The cursor that you acknowledged last; empty for the first delivery of a session. If it is not the one you have, chunks are missing.',
      ),
      header(standardHeaders.id, 'The delivery id, under its Standard Webhooks name.'),
      header(standardHeaders.timestamp, 'The same timestamp, under its Standard Webhooks name.', { type: 'integer' }),
      header(
        standardHeaders.signature,
        'The signature in the Standard Webhooks format: `v1,` and base64; several are separated by spaces.',
      ),
    ],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: envelope, example: resourceExamples.Envelope } },
    },
    responses: {
      '2XX': { description: 'Received: the next delivery of this session follows.' },
      401: { description: 'The signature or the timestamp is wrong.' },
      410: { description: 'The receiver is gone: the subscription is disabled.' },
    },
  };
}
