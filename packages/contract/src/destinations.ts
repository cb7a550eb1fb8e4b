/** Destinations: where records of the event log are sent. */
import { eventTypes } from './events.ts';
import {
  EnvironmentName,
  Id,
  ListQuery,
  Name,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';
import {
  DestinationUrl,
  deliveryStatuses,
  destinationStates,
  SigningSecret,
  subscriptionStatuses,
  WebhookAttempt,
  webhookBlocks,
} from './webhooks.ts';

/** What a destination can be: `webhook` receives the records themselves, signed. */
export const destinationTypes = ['webhook'] as const;

/** How many destinations an organization can have. */
export const maxDestinations = 100;

/** How many records one delivery has at most; and at most 64 KiB, unless a single one is larger. */
export const maxEventsPerDelivery = 100;

const EventTypes = Type.Array(
  Type.String({
    maxLength: 100,
    pattern: '^([a-z_]+(\\.[a-z_]+)*(\\.\\*)?|\\*)$',
    'x-expected': 'a type of record such as `session.failed`, a group such as `approval.*`, or `*`',
  }),
  {
    minItems: 1,
    maxItems: eventTypes.length,
    uniqueItems: true,
    description:
      'Which records are sent: types such as `session.failed`, groups such as `approval.*`, or `*` for all. A type that does not exist is refused, and so is a group without types. Records about the destination itself are never sent to it.',
    examples: [['approval.*', 'session.failed']],
  },
);
const AgentIds = Type.Array(Id('agt'), {
  minItems: 1,
  maxItems: 50,
  uniqueItems: true,
  description: 'Only records about these agents, their sessions, approvals and schedules.',
});
const Headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 20,
  propertyNames: { minLength: 1, maxLength: 100 },
  additionalProperties: { type: 'string', minLength: 1, maxLength: 4096 },
  description:
    'Headers of your own, such as `Authorization` for a receiver that wants a key. They are encrypted and never returned. They replace all earlier ones, and are deleted if the URL gets another scheme, host or port. `X-Service-*`, `Webhook-*`, `Content-*`, `Host`, `User-Agent` and headers of the connection are refused.',
});

/** Which records of the log a destination has not received, and will not: retention deleted them before they were read. */
export const LostEvents = Type.Object(
  { from: Type.Integer(), to: Type.Integer() },
  { title: 'LostEvents', description: 'The first and the last `sequence`.' },
);

export const DestinationHealth = Type.Object(
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
      description: 'After 5 failures in a row: the time of the next probe. Until one is accepted, deliveries wait.',
    }),
    lostEvents: Nullable(LostEvents, {
      description:
        'Records that retention deleted before the destination read them, the latest such gap; null: none since it was created or recovered.',
    }),
  },
  { title: 'DestinationHealth', description: 'The health of the destination, at most a second old.' },
);

export const Destination = Type.Object(
  {
    destinationId: Id('dst'),
    name: Type.String(),
    type: OneOf(destinationTypes, { title: 'DestinationType' }),
    eventTypes: EventTypes,
    environment: Nullable(EnvironmentName, {
      description: 'Only records of this environment; null: of all, and of what belongs to none.',
    }),
    agentIds: Nullable(Type.Array(Id('agt')), { description: 'Only records about these agents; null: all records.' }),
    url: Type.String(),
    headerNames: Type.Array(Type.String(), { description: 'The names of your own headers, in lower case.' }),
    status: OneOf(subscriptionStatuses, { title: 'DestinationStatus' }),
    disabledReason: Nullable(
      Type.String({ description: '`gone`: it responded with 410; `failing`: it has failed for 5 days.' }),
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
    health: DestinationHealth,
  },
  { title: 'Destination' },
);
export type Destination = Static<typeof Destination>;

export const CreatedDestination = Type.Object(
  { destination: Destination, signingSecret: Type.Optional(SigningSecret) },
  { title: 'CreatedDestination' },
);

export const CreateDestination = Strict(
  {
    name: Name,
    type: OneOf(destinationTypes),
    eventTypes: EventTypes,
    environment: Type.Optional(EnvironmentName),
    agentIds: Type.Optional(AgentIds),
    url: DestinationUrl,
    headers: Type.Optional(Headers),
  },
  { title: 'CreateDestination' },
);
export const UpdateDestination = Strict(
  {
    name: Type.Optional(Name),
    eventTypes: Type.Optional(EventTypes),
    agentIds: Type.Optional(Nullable(AgentIds)),
    url: Type.Optional(DestinationUrl),
    headers: Type.Optional(Headers),
    status: Type.Optional(OneOf(['enabled', 'paused'])),
  },
  { title: 'UpdateDestination' },
);

/** What to send again: records from this sequence number, or from this time on. */
export const RecoverDestination = Strict(
  {
    from: Type.Unsafe<number | string>({
      anyOf: [Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Timestamp],
      description: 'The `sequence` of the first record, or a time: records since then.',
      examples: [4210],
    }),
  },
  { title: 'RecoverDestination' },
);

/** The body that a destination of type `webhook` receives. */
export const destinationEvent = 'organization.events';

const deliveryFields = {
  deliveryId: Id('dsd'),
  destinationId: Id('dst'),
  status: OneOf(deliveryStatuses, { title: 'DestinationDeliveryStatus' }),
  resource: Type.Object(
    { type: Type.String(), id: Type.String() },
    {
      title: 'DeliveredResource',
      description: 'The session, or else the resource, that the records are about. Its deliveries are sent in order.',
    },
  ),
  eventCount: Type.Integer(),
  firstSequence: Type.Integer(),
  lastSequence: Type.Integer(),
  previousSequence: Nullable(Type.Integer(), {
    description:
      'The last record about the same resource that was to be sent before, as in `X-Service-Previous-Cursor`; null: none. A receiver that does not have it has missed a delivery.',
  }),
  attemptCount: Type.Integer({ description: 'Number of attempts so far.' }),
  createdAt: Timestamp,
  nextAttemptAt: Nullable(Timestamp, {
    description:
      'When it is sent. If the destination is being probed, it is sent as a probe or after one was accepted.',
  }),
  finishedAt: Nullable(Timestamp),
};
export const DestinationDelivery = Type.Object(deliveryFields, { title: 'DestinationDelivery' });
export type DestinationDelivery = Static<typeof DestinationDelivery>;
export const DestinationDeliveryWithAttempts = Type.Object(
  {
    ...deliveryFields,
    attempts: Type.Array(WebhookAttempt, {
      description: 'The last 50, oldest first. Your own headers are not among those of the request.',
    }),
    requestBody: Nullable(Type.String(), {
      description: 'The body, identical in every attempt; null if its records are no longer in the log.',
    }),
  },
  { title: 'DestinationDeliveryWithAttempts' },
);

export const ListDestinations = ListQuery({ environment: Type.Optional(EnvironmentName) });
export const ListDestinationDeliveries = ListQuery({ status: Type.Optional(OneOf(deliveryStatuses)) });
export const DestinationParams = Strict({ destinationId: Id('dst') });
export const DestinationDeliveryParams = Strict({ destinationId: Id('dst'), deliveryId: Id('dsd') });
export const DestinationPage = Page(Destination);
export const DestinationDeliveryPage = Page(DestinationDelivery);
