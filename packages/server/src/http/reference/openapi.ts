// The OpenAPI 3.1 document, from the same table that the server runs on. Titled schemas of the contract are its
// components; permission, error codes and second paths stand in it too, so that the reference page needs nothing else.
import {
  collectComponents,
  deliveryHeaders,
  Envelope,
  type ErrorCode,
  errorCodes,
  Problem,
  permissions,
  type Route,
  type RouteName,
  replayWindowSeconds,
  type SchemaObject,
  standardHeaders,
} from '@signalbox/contract';
import { Value } from 'typebox/value';
import { reachOf } from '../request/environment-gate.ts';
import { bodyExamples } from './examples.ts';

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
  /** What the caller's key must hold at least. */
  'x-permission': string;
  /** The same operation at another path. */
  'x-also-at'?: string;
  /** Everything that `code` of an error can be here. */
  'x-error-codes': ErrorCode[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, Answer>;
}

interface Webhook {
  operationId: string;
  summary: string;
  description: string;
  parameters: Parameter[];
  requestBody: { required: boolean; content: Content };
  responses: Record<string, Answer>;
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

type Content = Record<string, { schema: SchemaObject; example?: unknown }>;

interface Answer {
  $ref?: string;
  description: string;
  headers?: Record<string, unknown>;
  content?: Content;
}

const PREFIX = '/api/v1';

const tags: Record<string, string> = {
  'API keys': 'Who may call, and what for. A plaintext secret is shown once, when it is made.',
  Agents: 'A model, instructions and tools, in versions that never change.',
  Environments:
    'Named scopes for Sessions, webhook subscriptions and secrets; `production` and `staging` exist from the start.',
  Sessions: 'An Agent at work: turns, messages, and the journal of everything that was shown.',
  Approvals: 'Effectful calls that wait for a person.',
  Schedules: 'Sessions that the service opens on time: again and again by a cron expression, or once.',
  'Worker turns':
    "Steps of Agents whose model is `worker`, run by a program of the integrator's own. The client's `workers.run` does all of it.",
  'Webhook subscriptions': 'Session activity pushed to an address of yours, signed; one subscription an Environment.',
  Overview: 'What goes on now, in a few numbers.',
  People:
    'Who signs in to the console, and the links that let them in. Only for a person who is signed in: no key will do.',
  Usage: 'Tokens, model calls and what they cost, over all Sessions.',
  'Event log': 'Who changed what in the organization, in one chain without gaps.',
};

const description = `Signalbox is a platform for running Agents. An Agent runs in Sessions; a Session streams what it does, stops where a person must approve, and completes.

Every request carries \`Authorization: Bearer <API key>\`. Bodies are JSON, UTF-8, at most 1 MiB; a field that is not known is refused, by name. Times are ISO 8601 in UTC. Every answer carries \`X-Request-Id\`. HEAD answers wherever GET does: the same without a body, and of a stream its headers alone.

Lists answer \`{ data, page: { hasMore, nextCursor } }\`: while \`hasMore\` is true, pass \`nextCursor\` as \`cursor\`. It is always the place to go on from, so a poller keeps it.

A POST may carry an \`Idempotency-Key\`, kept for 24 hours: sent again with the same body it answers what it answered first, with \`Idempotent-Replayed: true\`, and does nothing twice. Bodies are the same if they are the same JSON, whatever the order of their fields; above 64 KiB they must have the same bytes. The body of such an answer is the first one's, a refusal's \`requestId\` too; \`X-Request-Id\` is its own.`;

/**
 * Describes `routes`. The result is plain JSON, the same for the same routes and version.
 *
 * @throws Error where two different schemas of the contract have one title
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
      'x-permission': route.permission,
      ...(route.alsoAtRoot && { 'x-also-at': route.path }),
      parameters: [
        ...parametersIn('path', route.params),
        ...parametersIn('query', route.query),
        ...(route.method === 'POST' ? [idempotencyKey] : []),
        ...(route.stream === 'sse' ? [lastEventId] : []),
      ],
      ...(route.body && {
        requestBody: {
          required: !Value.Check(route.body, {}),
          content: {
            'application/json': { schema: refer(route.body), example: bodyExamples[operationId as RouteName] },
          },
        },
      }),
      'x-error-codes': codesOf(route),
      responses: { ...successOf(operationId, route), ...errorsOf(route) },
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

  function successOf(operationId: string, route: Route): Record<string, Answer> {
    const headers = {
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
      ...(route.method === 'POST' && { 'Idempotent-Replayed': { $ref: '#/components/headers/Idempotent-Replayed' } }),
    };
    const schema = refer(named(operationId, route.result as SchemaObject));
    if (!route.stream) {
      const text = { 200: 'Done.', 201: 'Created.', 202: 'Accepted; it happens when its turn comes.' }[route.status];
      return { [route.status]: { description: text, headers, content: { 'application/json': { schema } } } };
    }
    if (route.stream === 'export') {
      return {
        200: {
          description:
            'A file. `jsonl`: one of these a line, which `signalbox events verify` can check. `csv`: a table of the same, with a line of names. A connection that is cut means that it is not the whole.',
          headers,
          content: { 'application/jsonl': { schema }, 'text/csv': { schema: { type: 'string' } } },
        },
      };
    }
    return {
      200: {
        description:
          'Server-Sent Events: `id` is the cursor, `event` is `session.chunks`, `data` is an Envelope. A comment line comes every 10 s. It ends after the terminal status.',
        headers,
        content: { 'text/event-stream': { schema } },
      },
      204: { description: 'The Session has ended and nothing follows this cursor: stop asking.', headers },
    };
  }

  const envelope = refer(Envelope);
  return {
    openapi: '3.1.0',
    info: { title: 'Signalbox', version, description, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'This service.' }],
    tags: Object.entries(tags).map(([name, text]) => ({ name, description: text })),
    security: [{ apiKey: [] }],
    paths,
    webhooks: { 'session.chunks': { post: delivery(envelope) } },
    components: {
      responses: problemResponses(problem),
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: `An API key's secret, \`sbk_…\`. Its permission (${permissions.join(', ')}) decides what it may do.`,
        },
      },
      headers: {
        'X-Request-Id': {
          description: 'Names this request in the log, in the event log and in the body of an error.',
          required: true,
          schema: { type: 'string', pattern: '^req_' },
        },
        'Idempotent-Replayed': {
          description:
            '`true` where this is the first answer again, by its idempotency key. A `requestId` in its body is that of the first request.',
          schema: { type: 'string', const: 'true' },
        },
        'Retry-After': {
          description: 'Seconds to wait before the request is made again.',
          schema: { type: 'integer', minimum: 0 },
        },
      },
    },
  };
}

/** What the summary does not say of an operation, for readers who don't see its extensions. */
function descriptionOf(route: Route): string {
  return [
    route.byPerson
      ? `Only for a person who is signed in, with the rights of \`${route.permission}\`.`
      : `Needs a key with the permission \`${route.permission}\` or more.`,
    ...(route.alsoAtRoot ? [`Also answered at \`${route.path}\`.`] : []),
  ].join(' ');
}

/** A body with a title, by which generators name its class: `SessionResult`, `SessionList`, else after the operation. */
function named(operationId: string, result: SchemaObject): SchemaObject {
  if (result.title !== undefined) return result;
  const [[field, value] = [], ...others] = Object.entries(result.properties ?? {});
  const item = result.properties?.data?.items?.title;
  const isList = item !== undefined && result.properties?.page !== undefined;
  const single = field !== undefined && others.length === 0 ? value?.title : undefined;
  const own = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Result`;
  return { ...result, title: isList ? `${item}List` : single === undefined ? own : `${single}Result` };
}

/** The answers that are errors, by reference: status and shape are the same everywhere, only the codes differ. */
function errorsOf(route: Route): Record<string, Answer> {
  const byStatus = Map.groupBy(codesOf(route), (code) => errorCodes[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      { $ref: `#/components/responses/Problem${status}`, description: codes.map((code) => `\`${code}\``).join(', ') },
    ]),
  );
}

function problemResponses(problem: SchemaObject): Record<string, Answer> {
  const codes = Object.keys(errorCodes) as ErrorCode[];
  const byStatus = Map.groupBy(codes, (code) => errorCodes[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      `Problem${status}`,
      {
        description: ofStatus.map((code) => `\`${code}\`: ${errorCodes[code][1]}.`).join(' '),
        headers: {
          'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
          ...(status === 401 && { 'WWW-Authenticate': { schema: { type: 'string', const: 'Bearer' } } }),
          ...((status === 429 || status === 503) && { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }),
        },
        content: { 'application/problem+json': { schema: problem } },
      },
    ]),
  );
}

/** Every code that the route can answer with, in the order of the contract. */
function codesOf(route: Route): ErrorCode[] {
  const query = (route.query ?? {}) as SchemaObject;
  const can = new Set<ErrorCode>([
    'invalid_request',
    'missing_token',
    'malformed_token',
    'invalid_token',
    'token_expired',
    'token_rotated',
    'token_revoked',
    'ip_not_allowed',
    'request_timeout',
    'uri_too_long',
    'headers_too_large',
    'rate_limited',
    'internal_error',
    'unavailable',
    ...(route.errors ?? []),
  ]);
  if (query.properties && 'cursor' in query.properties) can.add('invalid_cursor');
  // Every key holds `read` at least; one that is limited to Environments lacks what is of another.
  if (route.permission !== 'read' || reachOf(route) !== 'open') can.add('insufficient_permission');
  if (route.byPerson) can.add('person_required');
  if (route.params) can.add('not_found');
  // Also where none is taken: what comes is read before it is refused.
  if (route.method !== 'GET') can.add('payload_too_large').add('unsupported_media_type');
  if (route.method === 'POST') can.add('idempotency_conflict').add('idempotency_in_progress');
  return (Object.keys(errorCodes) as ErrorCode[]).filter((code) => can.has(code));
}

const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes the call safe to repeat: the same key and body answer what was answered first, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const lastEventId: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The cursor to resume after, as browsers send it when they connect again; goes before `cursor`.',
  schema: { type: 'string' },
};

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
    summary: 'What a Session has shown, pushed to a subscriber',
    description: `\`${header(deliveryHeaders.signature, '').name}\` is HMAC-SHA256, in lowercase hexadecimal, of \`<timestamp>.<raw body>\`: the value of \`${header(deliveryHeaders.timestamp, '').name}\`, a dot, and the bytes of the body as they came. The key is the UTF-8 bytes of the whole signing secret, \`whsec_\` included.

A receiver parses the timestamp as an integer and refuses what is more than ${replayWindowSeconds} seconds from its own clock; computes the HMAC over the raw bytes and compares in constant time; answers 401 where that fails, else 200 with a JSON acknowledgement. During the grace period after a rotation it accepts the old secret and the new one.

Deliveries come in order and one at a time within a Session, at least once: tell doubles by the delivery id or the cursor. Any 2xx within 15 seconds counts as received; anything else is sent again, with the same bytes and a new timestamp and signature. Redirects are not followed.`,
    parameters: [
      header(deliveryHeaders.timestamp, 'When it was dispatched, in epoch seconds.', { type: 'integer' }),
      header(deliveryHeaders.signature, 'As above.', { type: 'string', pattern: '^[0-9a-f]{64}$' }),
      header(deliveryHeaders.deliveryId, 'The same on every attempt.', { type: 'string', pattern: '^whd_' }),
      header(deliveryHeaders.attempt, 'Counts from 1.', { type: 'integer', minimum: 1 }),
      header(deliveryHeaders.secretVersion, 'Of the secret that signed.', { type: 'integer', minimum: 1 }),
      header(
        deliveryHeaders.previousCursor,
        "What you had acknowledged before; empty for a Session's first. Another than you hold means that chunks are missing.",
      ),
      header(standardHeaders.id, 'The delivery id, as Standard Webhooks names it.'),
      header(standardHeaders.timestamp, 'The same timestamp, as Standard Webhooks names it.', { type: 'integer' }),
      header(
        standardHeaders.signature,
        'The same delivery as Standard Webhooks signs it: `v1,` and base64, several separated by spaces.',
      ),
    ],
    requestBody: { required: true, content: { 'application/json': { schema: envelope } } },
    responses: {
      '2XX': { description: 'Received: the next delivery of this Session follows.' },
      401: { description: 'The signature or the timestamp is not right.' },
      410: { description: 'Nobody is here any more: the subscription is disabled.' },
    },
  };
}
