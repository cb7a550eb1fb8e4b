/** Approvals: an effectful operation waits for a decision. */
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

export const Approval = Type.Object(
  {
    operationId: Id('op', 'Stored before the approval is announced; never changes.'),
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
    resolvedBy: Nullable(
      Type.Object(
        {
          type: OneOf(['api_key', 'user', 'system']),
          id: Nullable(Type.String()),
          name: Type.String(),
          onBehalfOf: Nullable(Type.String({ description: "The integrator's own user, as given by the caller." })),
        },
        { title: 'ResolvedBy' },
      ),
    ),
    requestedAt: Timestamp,
    resolvedAt: Nullable(Timestamp),
    expiresAt: Nullable(Timestamp),
  },
  { title: 'Approval' },
);
export type Approval = Static<typeof Approval>;

export const ResolveApproval = Strict(
  {
    decision: OneOf(['approved', 'denied']),
    reason: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2_000, description: 'The model sees the reason of a denial.' }),
    ),
    input: Type.Optional(
      Type.Unsafe<unknown>({
        description: "With `approved`: the complete input to use instead. It must match the tool's schema.",
      }),
    ),
    scope: Type.Optional(
      OneOf(['once', 'session'], {
        default: 'once',
        description: 'With `approved`: `session` also approves later calls of this tool in this session.',
      }),
    ),
    onBehalfOf: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  },
  { title: 'ResolveApproval' },
);
export const ApprovalParams = Strict({ operationId: Id('op') });
export const ListApprovals = ListQuery({
  order: Type.Optional(
    OneOf(['asc', 'desc'], { default: 'asc', description: 'By time of request: oldest or newest first.' }),
  ),
  status: Type.Optional(OneOf(approvalStatuses)),
  environment: Type.Optional(EnvironmentName),
  sessionId: Type.Optional(Id('ses')),
});
export const ApprovalPage = Page(Approval);
