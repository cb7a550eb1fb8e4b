// An example of every response, for the OpenAPI document: built from the schema of the result, with the resource examples where it
// has one. The same contract gives the same examples.
import {
  type ErrorCode,
  errorCodes,
  type Problem,
  type Route,
  type RouteName,
  type SchemaObject,
} from '@signalbox/contract';
import { resourceExamples } from './resource-examples.ts';
import { approved } from './session-examples.ts';

/**
 * What a successful response of the route contains; `name` is that of the operation.
 *
 * @throws Error if a field of the result has neither an example nor a value that follows from its schema: add one
 */
export function responseExample(name: string, route: Route): unknown {
  const change = changes[name as RouteName];
  const example = exampleOf(route.result as SchemaObject, name);
  return change ? merged(example, change) : example;
}

/** The body of an error. */
export function problemExample(code: ErrorCode): Problem {
  const [status, title] = errorCodes[code];
  return {
    type: `/docs#${code}`,
    title,
    status,
    code,
    detail: details[code] ?? `${title}.`,
    requestId: 'req_01k9xq3v7gf3pbt8zn5e6m2r4c',
    ...(code === 'invalid_request' && { errors: [{ path: 'name', message: 'must not be empty' }] }),
  };
}

const details: Partial<Record<ErrorCode, string>> = {
  invalid_request: 'name: must not be empty',
  missing_token: 'Send an API key as `Authorization: Bearer <key>`.',
  rate_limited: 'Too many requests. Retry in 1 second.',
  unavailable: 'The database is not available. Retry in a moment.',
};

const ended = { endedAt: '2026-01-31T09:31:12.480Z' };
const running = { status: 'running', stopReason: null };
const started = {
  ...running,
  cursor: null,
  usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, steps: 0, toolCalls: 0, costUsd: 0 },
  updatedAt: '2026-01-31T09:30:00.000Z',
};

/** What an operation has changed in the resource that it returns. */
const changes: Partial<Record<RouteName, object>> = {
  createAgent: { agent: { version: 1, updatedAt: '2026-01-31T08:15:00.000Z' } },
  createKey: { apiKey: { environments: null, maxCostUsdPerDay: null, costUsdToday: 0, lastUsedAt: null } },
  rotateKey: { apiKey: { expiringSecret: resourceExamples.ExpiringSecret } },
  updateKey: { apiKey: { name: 'Billing, nightly' } },
  createEnvironment: { environment: { name: 'preview', keepSessionsDays: null, modelLimits: [], secretCount: 0 } },
  updateEnvironment: { environment: { keepSessionsDays: 30 } },
  openSession: { session: started },
  updateSession: { session: { metadata: { customer: '17', ticket: 'T-204' } } },
  forkSession: {
    session: {
      ...started,
      sessionId: 'ses_01k9xr0m4ptw7c2ye5h8kzv3nd',
      turn: 3,
      forkedFrom: { sessionId: 'ses_01k9xq3v7gf3pbt8zn5e6m2r4c', turn: 2 },
    },
  },
  sendMessage: { session: { ...running, turn: 2 } },
  sendToolResult: { session: running },
  retrySession: { session: running },
  compactSession: { session: running },
  interruptSession: { session: { stopReason: 'interrupted' } },
  closeSession: { session: { status: 'completed', ...ended } },
  cancelSession: { session: { status: 'cancelled', stopReason: null, ...ended } },
  resolveApproval: { approval: approved },
  runSchedule: {
    run: {
      manual: true,
      scheduledAt: '2026-01-30T15:12:40.217Z',
      session: { status: 'running', stopReason: null, error: null },
      createdAt: '2026-01-30T15:12:40.217Z',
    },
  },
  updateSchedule: { schedule: { status: 'paused', nextAt: null } },
  updateWebhookSubscription: { webhookSubscription: { status: 'paused' } },
  updateDestination: { destination: { status: 'paused' } },
  resendDelivery: { webhookDelivery: { status: 'pending', finishedAt: null } },
  updateMember: { member: { role: 'approver', canDecide: { agents: null, environments: ['production'] } } },
  getMe: { user: null },
  eraseEndUser: { endUser: { erasure: resourceExamples.Erasure } },
};

/** Values of fields whose meaning their schema does not say. */
const fields: Record<string, unknown> = {
  hasMore: false,
  nextCursor: 'MjAyNi0wMS0zMVQwOTozMDowMC4wMDBa',
  name: 'PAYMENTS_TOKEN',
  count: 128,
  isExact: true,
};

function exampleOf(schema: SchemaObject, field: string): unknown {
  const { title = '', type } = schema;
  if (title in resourceExamples) return resourceExamples[title];
  if ('const' in schema) return schema.const;
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, exampleOf(property, name)]),
    );
  }
  if (schema.items) return [exampleOf(schema.items, field)];
  const [first] = schema.anyOf ?? schema.oneOf ?? [];
  if (first) return exampleOf(first, field);
  if (field in fields) return fields[field];
  if (schema.examples) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  throw new Error(`There is no example for ${field} (${title || type})`);
}

/** The example with the changes; objects are merged field by field. */
function merged(example: unknown, change: object): unknown {
  if (typeof example !== 'object' || example === null || Array.isArray(example)) return change;
  const before = example as Record<string, unknown>;
  return {
    ...before,
    ...Object.fromEntries(
      Object.entries(change).map(([name, value]) => [
        name,
        typeof value === 'object' && value !== null && !Array.isArray(value) ? merged(before[name], value) : value,
      ]),
    ),
  };
}
