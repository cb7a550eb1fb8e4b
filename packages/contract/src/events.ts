/** The organization event log: who changed what, in one chain without gaps. */
import {
  EnvironmentName,
  Id,
  ListQuery,
  longLists,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';

/** Every type of record. */
export const eventTypes = [
  'api_key.created',
  'api_key.updated',
  'api_key.rotated',
  'api_key.old_secret_deleted',
  'api_key.deleted',
  'agent.created',
  'agent.updated',
  'agent.archived',
  'agent.tool_tested',
  'session_token.created',
  'environment.created',
  'environment.updated',
  'environment.deleted',
  'environment_secret.set',
  'environment_secret.deleted',
  'session.created',
  'session.forked',
  'session.updated',
  'session.interrupted',
  'session.retried',
  'session.compaction_requested',
  'session.closing',
  'session.deleted',
  'session.shared',
  'session.share_revoked',
  'session.waiting',
  'session.idle',
  'session.completed',
  'session.failed',
  'session.cancelled',
  'turn.failed',
  'tool_call.outcome_unknown',
  'tool_server.unavailable',
  'tool_server.available',
  'approval.requested',
  'approval.decided',
  'approval.resolved',
  'file.created',
  'file.deleted',
  'end_user.erasure_started',
  'end_user.erased',
  'schedule.created',
  'schedule.updated',
  'schedule.deleted',
  'schedule.opened',
  'schedule.missed',
  'schedule.failed',
  'webhook_subscription.created',
  'webhook_subscription.updated',
  'webhook_subscription.deleted',
  'webhook_subscription.secret_rotated',
  'webhook_subscription.secret_confirmed',
  'webhook_subscription.degraded',
  'webhook_subscription.disabled',
  'webhook_subscription.enabled',
  'webhook_delivery.exhausted',
  'webhook_delivery.resent',
  'webhook_delivery.recovered',
  'destination.created',
  'destination.updated',
  'destination.deleted',
  'destination.enabled',
  'destination.disabled',
  'destination.degraded',
  'destination.secret_rotated',
  'destination.secret_confirmed',
  'destination.recovered',
  'budget.created',
  'budget.updated',
  'budget.deleted',
  'budget.threshold_reached',
  'model.ending',
  'organization.created',
  'organization.updated',
  'user.invited',
  'user.invitation_withdrawn',
  'user.joined',
  'user.role_changed',
  'user.can_decide_changed',
  'user.removed',
  'user.signed_in',
  'user.sign_in_failed',
  'user.signed_out',
  'user.password_reset_requested',
  'user.password_reset',
  'user.password_changed',
  'user.passkey_added',
  'user.passkey_removed',
  'user.provider_connected',
  'user.provider_disconnected',
  'access.denied',
] as const;
export const EventType = OneOf(eventTypes, { title: 'EventType' });
export type EventType = Static<typeof EventType>;

/** A type, all types of a group as `approval.*`, or all as `*`. */
export type EventTypePattern = EventType | '*' | `${string}.*`;

/** The types that a pattern stands for; empty if it is no type and matches none. */
export function eventTypesOf(pattern: string): EventType[] {
  if (pattern === '*') return [...eventTypes];
  const group = pattern.endsWith('.*') ? pattern.slice(0, -1) : undefined;
  return eventTypes.filter((type) => (group === undefined ? type === pattern : type.startsWith(group)));
}

export const Event = Type.Object(
  {
    eventId: Id('evt'),
    sequence: Type.Integer({ description: 'Counts from 1 in the organization, without gaps.' }),
    type: EventType,
    occurredAt: Timestamp,
    outcome: OneOf(['success', 'denied', 'failure']),
    actor: Type.Object(
      {
        type: OneOf(['api_key', 'user', 'agent', 'end_user', 'system']),
        id: Nullable(Type.String()),
        name: Type.String(),
      },
      { title: 'Actor' },
    ),
    resource: Type.Object({ type: Type.String(), id: Type.String() }, { title: 'EventResource' }),
    environment: Nullable(Type.String()),
    sessionId: Nullable(Id('ses')),
    agentId: Type.Optional(
      Id(
        'agt',
        'The agent that it is about, or whose session, approval, schedule or tool server it is about. Absent if there is none, and in records of releases that did not write it.',
      ),
    ),
    changes: Nullable(
      Type.Unsafe<Record<string, [before: unknown, after: unknown]>>({
        type: 'object',
        description:
          '`{ field: [before, after] }`. Never contains a secret; a value longer than 4,096 characters is replaced by its size and SHA-256, `{ bytes, sha256 }`, and a value that may be personal data of an end user by its size, `{ bytes }`.',
        additionalProperties: { type: 'array', items: {}, minItems: 2, maxItems: 2 },
      }),
    ),
    context: Type.Object(
      {
        requestId: Nullable(Type.String()),
        ipAddress: Nullable(Type.String()),
        userAgent: Nullable(Type.String()),
      },
      { title: 'EventContext' },
    ),
    previousHash: Type.String({ description: 'Hash of the previous record; 64 zeros for the first.' }),
    hash: Type.String({
      description:
        'Lowercase hex of SHA-256 over the bytes of `previousHash` and the canonical JSON (RFC 8785) of the record without both hashes.',
    }),
  },
  { title: 'Event' },
);
export type Event = Static<typeof Event>;

export const EventParams = Strict({ eventId: Id('evt') });

/** How long a request can wait for the next record, in seconds. */
export const longestEventWaitSeconds = 20;

const filters = {
  // There are too many types to list in the pattern; the handler refuses unknown ones.
  type: Type.Optional(
    Type.String({
      maxLength: 2_000,
      pattern: '^[a-z_.*]+(,[a-z_.*]+)*$',
      description:
        'Only records of this type, or of these types, comma separated: `approval.*` stands for all types that begin with `approval.`, `*` for all. A type that does not exist is refused, and so is a pattern that matches none. With one filter, or with a type and an environment, a page takes the same time regardless of the number of records. With others, it takes longest if many records match each filter and none matches all.',
      examples: ['approval.*,session.failed'],
    }),
  ),
  actorId: Type.Optional(Type.String({ maxLength: 100 })),
  resourceId: Type.Optional(Type.String({ maxLength: 200 })),
  sessionId: Type.Optional(Id('ses')),
  agentId: Type.Optional(Id('agt', 'Only records that have this `agentId`; records of earlier releases have none.')),
  environment: Type.Optional(EnvironmentName),
  since: Type.Optional(Timestamp),
  until: Type.Optional(Timestamp),
  afterSequence: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only records after this one of the organization.',
    }),
  ),
};
export const ListEvents = ListQuery(
  {
    order: Type.Optional(OneOf(['desc', 'asc'], { default: 'desc', description: 'Newest or oldest first.' })),
    ...filters,
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: longestEventWaitSeconds,
        default: 0,
        description: 'With `order=asc`: how many seconds to wait for a record if there is none yet.',
      }),
    ),
  },
  longLists,
);
export const EventPage = Page(Event);

export const ExportEvents = Strict({
  format: Type.Optional(
    OneOf(['jsonl', 'csv'], {
      default: 'jsonl',
      description: '`jsonl`: one record per line, as in the list, for verification; `csv`: for spreadsheets.',
    }),
  ),
  ...filters,
});
