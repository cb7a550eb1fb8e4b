/** Approvals: an effectful operation waits for a decision. */

import { decidingRoles } from './constants.ts';
import type { ErrorCode } from './errors.ts';
import {
  EnvironmentName,
  Id,
  Json,
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
 * The status of an approval. `pending` → one of the others, once:
 *
 * - `approved`, `denied`: decided; the first decision wins.
 * - `expired`: not decided in time.
 * - `cancelled`: the session ended or moved on before a decision.
 */
export const approvalStatuses = ['pending', 'approved', 'denied', 'expired', 'cancelled'] as const;

/** How many approvers a call can need. */
const MOST_APPROVERS = 5;

const only = (description: string) => Type.Optional(Type.Literal(true, { description }));
/** Who may decide the approvals of a tool. */
export const Approvers = Strict(
  {
    people: only('People whose role can decide approvals, unless `roles` names some of them.'),
    roles: Type.Optional(
      Type.Array(OneOf(decidingRoles), {
        minItems: 1,
        maxItems: decidingRoles.length,
        uniqueItems: true,
        description: 'Only people with one of these roles.',
      }),
    ),
    keys: only('API keys.'),
    endUser: only("The session's end user, with a session token that can decide."),
    notRequester: only(
      'Not the keys and people that opened the session or sent it a message, and no keys that they created. Not together with `endUser`.',
    ),
    count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MOST_APPROVERS,
        default: 1,
        description: 'How many different approvers have to approve the same input. One denial is final.',
      }),
    ),
  },
  {
    title: 'Approvers',
    description:
      'Who may decide. Each of `people`, `roles`, `keys` and `endUser` admits more; with none of them, all people and keys that can decide approvals may.',
  },
);
export type Approvers = Static<typeof Approvers>;

/** How many different approvers have approved, and how many it takes. */
export const ApprovalProgress = Type.Object(
  {
    approved: Type.Integer({
      description:
        'How many have approved. If they approved different inputs: the largest number that approved the same.',
    }),
    required: Type.Integer(),
  },
  { title: 'ApprovalProgress' },
);
export type ApprovalProgress = Static<typeof ApprovalProgress>;

const DecidedBy = Type.Object(
  {
    type: OneOf(['api_key', 'user', 'end_user', 'system']),
    id: Nullable(Type.String()),
    name: Type.String(),
    onBehalfOf: Nullable(Type.String({ description: "The integrator's own user, as given by the caller." })),
  },
  { title: 'ResolvedBy' },
);

/** What one approver decided. */
export const ApprovalDecision = Type.Object(
  {
    decision: OneOf(['approved', 'denied']),
    actor: DecidedBy,
    at: Timestamp,
    reason: Nullable(Type.String()),
    input: Type.Optional(
      Type.Unsafe<unknown>({ description: 'The input that was approved. Absent: as the model requested it.' }),
    ),
    scope: OneOf(['once', 'session']),
  },
  { title: 'ApprovalDecision' },
);
export type ApprovalDecision = Static<typeof ApprovalDecision>;

/** The limits of the context of an approval: it is for reading in a list, next to a link to the session. */
export const CONTEXT_MESSAGES = 3;
export const CONTEXT_CHARACTERS = 500;

export const ContextMessage = Type.Object(
  {
    role: OneOf(['user', 'assistant']),
    text: Type.String({ description: `Up to ${CONTEXT_CHARACTERS} characters of its text.` }),
    isCut: Type.Boolean({ description: 'Whether the message has more text.' }),
    createdAt: Timestamp,
  },
  { title: 'ContextMessage' },
);
export type ContextMessage = Static<typeof ContextMessage>;

const include = Type.Optional(
  OneOf(['context'], { description: 'The messages before the call as well. Not for session tokens.' }),
);

export const Approval = Type.Object(
  {
    operationId: Id('op', 'Stored before the approval is announced; never changes.'),
    toolCallId: Id('call', 'The call that waits, as chunks and messages name it.'),
    sessionId: Id('ses'),
    agentId: Id('agt'),
    environment: EnvironmentName,
    name: Type.String({ description: 'The tool that would run.' }),
    input: Json,
    allowsSession: Type.Boolean({
      description:
        "Whether approving it also approves later calls of this tool in this session: the tool's policy is `once`.",
    }),
    editedInput: Type.Unsafe<unknown>({
      description: 'The input with which the approver replaced it; null if it was not edited.',
    }),
    status: OneOf(approvalStatuses, { title: 'ApprovalStatus' }),
    reason: Nullable(Type.String()),
    by: Nullable(Approvers, {
      description: 'As the agent said when the call was requested; later versions do not change it. null: the default.',
    }),
    decisions: Type.Array(ApprovalDecision, {
      description: "In their order. A repeated approval replaces the same approver's earlier one.",
    }),
    progress: ApprovalProgress,
    refusal: Nullable(
      Type.Object({
        code: Type.Unsafe<ErrorCode>({ type: 'string' }),
        message: Type.String(),
      }),
      {
        title: 'ApprovalRefusal',
        description:
          'If it is pending: the error that the caller of this request would get for approving it. null: the caller may decide. With `already_decided_by_you` it can still deny.',
      },
    ),
    resolvedBy: Nullable(DecidedBy),
    requestedAt: Timestamp,
    resolvedAt: Nullable(Timestamp),
    expiresAt: Nullable(Timestamp),
    context: Type.Optional(
      Type.Array(ContextMessage, {
        description: `With \`include=context\`: the last ${CONTEXT_MESSAGES} messages before the call that have text, oldest first. The message with the call itself is one of them if it has text.`,
      }),
    ),
  },
  { title: 'Approval' },
);
export type Approval = Static<typeof Approval>;

const how = {
  decision: OneOf(['approved', 'denied']),
  reason: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2_000, description: 'The model sees the reason of a denial.' }),
  ),
};
const scope = Type.Optional(
  OneOf(['once', 'session'], {
    default: 'once',
    description: 'With `approved`: `session` also approves later calls of this tool in this session.',
  }),
);
const onBehalfOf = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }));

export const ResolveApproval = Strict(
  {
    ...how,
    input: Type.Optional(
      Type.Unsafe<unknown>({
        description: "With `approved`: the complete input to use instead. It must match the tool's schema.",
      }),
    ),
    scope,
    onBehalfOf,
  },
  { title: 'ResolveApproval' },
);

/** How many approvals one request can decide. */
export const MAX_RESOLVED_AT_ONCE = 100;

export const ResolveApprovals = Strict(
  {
    operationIds: Type.Array(Id('op'), {
      minItems: 1,
      maxItems: MAX_RESOLVED_AT_ONCE,
      uniqueItems: true,
      description: 'The approvals that get this decision.',
    }),
    ...how,
    scope,
    onBehalfOf,
  },
  { title: 'ResolveApprovals' },
);

/** What became of one approval of a request for several. */
export const ApprovalOutcome = Type.Object(
  {
    operationId: Id('op'),
    status: Nullable(OneOf(approvalStatuses), {
      description: 'Its status now: `pending` if more approvers are needed. null: it was refused.',
    }),
    progress: Nullable(ApprovalProgress, { description: 'null: it was refused.' }),
    error: Nullable(
      Type.Object({
        status: Type.Integer(),
        code: Type.Unsafe<ErrorCode>({ type: 'string' }),
        detail: Type.String(),
      }),
      { description: 'The error that deciding this approval alone would have had; null: it was decided.' },
    ),
  },
  { title: 'ApprovalOutcome' },
);
export type ApprovalOutcome = Static<typeof ApprovalOutcome>;
export const ApprovalParams = Strict({ operationId: Id('op') });
export const ListApprovals = ListQuery({
  order: Type.Optional(
    OneOf(['asc', 'desc'], { default: 'asc', description: 'By time of request: oldest or newest first.' }),
  ),
  status: Type.Optional(OneOf(approvalStatuses)),
  agentId: Type.Optional(Id('agt', 'Only for calls of this agent, also in child sessions that it runs.')),
  environment: Type.Optional(EnvironmentName),
  sessionId: Type.Optional(Id('ses')),
  include,
});
export const GetApproval = Strict({ include });
export const ApprovalPage = Page(Approval);
