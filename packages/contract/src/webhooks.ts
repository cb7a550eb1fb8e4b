/** Webhook subscriptions and their deliveries. */
import { ChunkCursor, ChunkType } from './chunks.ts';
import {
  EnvironmentName,
  Id,
  ListQuery,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';

/**
 * Whether a subscription sends deliveries.
 *
 * - `enabled`: it does. → paused (by a caller), disabled (by the service; `disabledReason` says why)
 * - `paused`: stopped by a caller; chunks are kept and sent later. → enabled
 * - `disabled`: the destination responded 410 (`gone`) or has been failing for 5 days (`failing`); chunks are kept and sent
 *   later. → enabled
 */
export const subscriptionStatuses = ['enabled', 'paused', 'disabled'] as const;

/** The URL of the built-in receiver: it stores requests inside the service, where they can be read. */
export const testReceiverUrl = 'signalbox:test-receiver';

const WebhookUrl = Type.String({
  maxLength: 2048,
  description:
    '`https`, without user info, at a public address; `http` and private addresses if the operator allows them. Or the built-in `signalbox:test-receiver`.',
  examples: ['https://example.com/hooks/signalbox'],
});
/** As `WebhookUrl`, without the built-in receiver. */
export const DestinationUrl = Type.String({
  maxLength: 2048,
  pattern: '^https?://',
  'x-expected': 'a URL that begins with `https://`',
  description:
    '`https`, without user info, at a public address; `http` and private addresses if the operator allows them.',
  examples: ['https://example.com/hooks/signalbox'],
});
const ChunkTypes = Type.Array(ChunkType, {
  minItems: 1,
  maxItems: 20,
  uniqueItems: true,
  description:
    'What is delivered. `message.reset` is included whenever a type that it voids is: `message.chunk`, `step.started`, `message.started`, `reasoning.chunk`, `tool.input.chunk`.',
});

/**
 * The health of the destination, by its last responses.
 *
 * - `healthy`: the last attempt was accepted, or there was none.
 * - `failing`: the last attempt was not accepted. → the others
 * - `degraded`: no attempt was accepted for a day; after 5 days the subscription is disabled.
 * - `blocked`: nothing can be sent, regardless of the destination; `blockedBy` and `reason` say why. It takes precedence over
 *   the others.
 */
export const destinationStates = ['healthy', 'failing', 'degraded', 'blocked'] as const;

/**
 * Why nothing can be sent.
 *
 * - `no_delivery_node`: no node with the role `delivery` is alive.
 * - `secret_unreadable`: the master keys of the installation can't decrypt the signing secret.
 * - `url_not_allowed`: the URL, or an address that its host resolved to at the last attempt, is no longer allowed.
 */
export const webhookBlocks = ['no_delivery_node', 'secret_unreadable', 'url_not_allowed'] as const;
export type WebhookBlock = (typeof webhookBlocks)[number];

export const WebhookHealth = Type.Object(
  {
    state: OneOf(destinationStates),
    blockedBy: Nullable(OneOf(webhookBlocks), {
      description: 'Why nothing can be sent; null: deliveries can be attempted.',
    }),
    reason: Nullable(Type.String(), { description: 'A description of the cause and how to fix it.' }),
    failingSince: Nullable(Timestamp, { description: 'Time of the first failed attempt since the last success.' }),
    consecutiveFailures: Type.Integer({
      description: 'Failed attempts in a row. From the fifth on, only probes count.',
    }),
    lastError: Nullable(Type.String(), { description: 'The `error` of the last attempt; null: it was accepted.' }),
    lastStatus: Nullable(Type.Integer(), {
      description: 'The HTTP status of that attempt; null: there was no response.',
    }),
    nextProbeAt: Nullable(Timestamp, {
      description:
        'After 5 failures in a row: the time of the next probe. Until one is accepted, other deliveries wait.',
    }),
    failingSessionId: Nullable(Id('ses'), {
      description:
        'The only session whose deliveries failed: while it is probed, the others continue. Null: none, or several.',
    }),
  },
  { title: 'WebhookHealth', description: 'The health of the destination, at most a second old.' },
);

export const WebhookSubscription = Type.Object(
  {
    webhookSubscriptionId: Id('whs'),
    environment: EnvironmentName,
    url: Type.String(),
    chunkTypes: ChunkTypes,
    status: OneOf(subscriptionStatuses, { title: 'WebhookSubscriptionStatus' }),
    disabledReason: Nullable(
      Type.String({ description: '`gone`: the destination responded with 410; `failing`: it has failed for 5 days.' }),
    ),
    secretVersion: Type.Integer({ description: 'Version of the newest signing secret; counts from 1.' }),
    previousSecretExpiresAt: Nullable(Timestamp, {
      description: 'Until then the previous secret also signs; null: there is none.',
    }),
    confirmedSecretVersion: Nullable(Type.Integer(), { description: 'The newest version that the receiver accepted.' }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    lastSuccessAt: Nullable(Timestamp, {
      description: 'When a delivery last succeeded. While deliveries succeed, it is updated every 15 s.',
    }),
    lastFailureAt: Nullable(Timestamp),
    health: WebhookHealth,
  },
  { title: 'WebhookSubscription' },
);
export type WebhookSubscription = Static<typeof WebhookSubscription>;

export const SigningSecret = Type.String({
  description:
    '`whsec_` and 44 characters of base64, shown only once. Absent only from an idempotent replay that was requested with another credential.',
});

export const CreatedWebhookSubscription = Type.Object(
  { webhookSubscription: WebhookSubscription, signingSecret: Type.Optional(SigningSecret) },
  { title: 'CreatedWebhookSubscription' },
);
export const RotatedSecret = Type.Object(
  {
    signingSecret: Type.Optional(SigningSecret),
    secretVersion: Type.Integer(),
    previousSecretExpiresAt: Nullable(Timestamp),
  },
  { title: 'RotatedSecret' },
);

/** How long the previous secret still signs after a rotation, by default. */
export const defaultGracePeriodSeconds = 24 * 3600;

export const CreateWebhookSubscription = Strict(
  { environment: EnvironmentName, url: WebhookUrl, chunkTypes: Type.Optional(ChunkTypes) },
  { title: 'CreateWebhookSubscription' },
);
export const UpdateWebhookSubscription = Strict(
  {
    url: Type.Optional(WebhookUrl),
    chunkTypes: Type.Optional(ChunkTypes),
    status: Type.Optional(OneOf(['enabled', 'paused'])),
  },
  { title: 'UpdateWebhookSubscription' },
);
export const RotateSecret = Strict(
  {
    gracePeriodSeconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600, default: defaultGracePeriodSeconds }),
    ),
  },
  { title: 'RotateSecret' },
);

/**
 * The status of a delivery.
 *
 * - `pending`: it is being sent, or is retried at `nextAttemptAt`. → the others
 * - `succeeded`: the receiver responded 2xx.
 * - `exhausted`: the last retry failed too. `X-Service-Previous-Cursor` of the session's next delivery has the last
 *   acknowledged cursor, so the receiver can see the gap.
 * - `cancelled`: the subscription was deleted, or `recover` put its chunks into later deliveries.
 */
export const deliveryStatuses = ['pending', 'succeeded', 'exhausted', 'cancelled'] as const;

const deliveryFields = {
  deliveryId: Id('whd'),
  webhookSubscriptionId: Id('whs'),
  environment: EnvironmentName,
  sessionId: Id('ses'),
  status: OneOf(deliveryStatuses, { title: 'WebhookDeliveryStatus' }),
  previousCursor: Nullable(ChunkCursor, { description: 'The cursor that the receiver acknowledged last; null: none.' }),
  cursor: ChunkCursor,
  attemptCount: Type.Integer({ description: 'Number of attempts so far.' }),
  createdAt: Timestamp,
  nextAttemptAt: Nullable(Timestamp, {
    description:
      'When it is retried. If the destination is being probed, it is sent as a probe or after one was accepted.',
  }),
  finishedAt: Nullable(Timestamp),
};

const Headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  description: 'Names are in lower case.',
  additionalProperties: { type: 'string' },
});

/** One attempt: a POST, successful or not. */
export const WebhookAttempt = Type.Object(
  {
    attempt: Type.Integer({ description: 'Counts from 1; as in the header `X-Service-Attempt`.' }),
    at: Timestamp,
    durationMs: Type.Integer(),
    status: Nullable(Type.Integer({ description: 'The HTTP status of the response; null: there was none.' })),
    error: Nullable(Type.String({ description: 'The class of the error: `timeout`, `connect`, `not_allowed` …' })),
    secretVersion: Type.Integer(),
    requestHeaders: Headers,
    responseBody: Nullable(Type.String({ description: 'The first 4 KiB of the response.' })),
  },
  { title: 'WebhookAttempt' },
);
export type WebhookAttempt = Static<typeof WebhookAttempt>;

/** A request to the built-in test receiver. */
export const ReceivedWebhook = Type.Object(
  {
    deliveryId: Id('whd'),
    attempt: Type.Integer(),
    verified: Type.Boolean({ description: 'Whether it was signed with a secret that was valid when it was received.' }),
    receivedAt: Timestamp,
    headers: Headers,
    body: Type.String({ description: 'The exact body, or its first 64 KiB.' }),
    truncated: Type.Boolean({ description: 'The body had more than 64 KiB.' }),
  },
  { title: 'ReceivedWebhook' },
);
export type ReceivedWebhook = Static<typeof ReceivedWebhook>;

export const WebhookDelivery = Type.Object(deliveryFields, { title: 'WebhookDelivery' });
export type WebhookDelivery = Static<typeof WebhookDelivery>;
export const WebhookDeliveryWithAttempts = Type.Object(
  {
    ...deliveryFields,
    attempts: Type.Array(WebhookAttempt, { description: 'The last 50, oldest first.' }),
    requestBody: Nullable(Type.String(), {
      description: 'The body, identical in every attempt; null if it is no longer in the journal.',
    }),
  },
  { title: 'WebhookDeliveryWithAttempts' },
);

/** What to send again from the journal: chunks of all sessions since a time, or of one session after a cursor. */
export const RecoverDeliveries = Type.Unsafe<{ since: string } | { sessionId: string; cursor: string }>({
  anyOf: [
    Strict({ since: Timestamp }, { title: 'RecoverSince' }),
    Strict({ sessionId: Id('ses'), cursor: ChunkCursor }, { title: 'RecoverSession' }),
  ],
  title: 'RecoverDeliveries',
});

export const ListWebhookSubscriptions = ListQuery({ environment: Type.Optional(EnvironmentName) });
export const ListDeliveries = ListQuery({
  status: Type.Optional(OneOf(deliveryStatuses)),
  sessionId: Type.Optional(Id('ses')),
});
export const ListReceivedWebhooks = ListQuery({});
export const SubscriptionParams = Strict({ env: EnvironmentName });
export const DeliveryParams = Strict({ env: EnvironmentName, deliveryId: Id('whd') });
export const WebhookSubscriptionPage = Page(WebhookSubscription);
export const WebhookDeliveryPage = Page(WebhookDelivery);
export const ReceivedWebhookPage = Page(ReceivedWebhook);
