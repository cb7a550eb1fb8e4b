// A decision of one caller on one approval. It holds the lock of the session's row, and so does everything else that changes an
// approval. Of several that arrive at the same time, on any nodes, each one therefore sees those before it: the call becomes ready
// exactly once, in the transaction of the decision that completes the approval.
import type { ApprovalOutcome, Input, Result } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { recordEvent, withoutValues } from '../events/record.ts';
import { grantOf, type StoredGrant, scopesOf } from '../keys/access.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction, type PoolContext } from '../lib/context.ts';
import { keyIdentity, keyIdsIn, userIdentity, userIdsIn } from '../lib/identities.ts';
import { uuidOf } from '../lib/ids.ts';
import { type Access, accessColumns } from '../people/memberships/can-decide.ts';
import { accessIn } from '../people/memberships/memberships.ts';
import { inputErrors } from '../schemas/schemas.ts';
import { recordAwaitedResult, showWhileWaiting } from '../session-rows/awaited-result.ts';
import {
  decidedChunk,
  notRunChunks,
  type Operation,
  operationColumns,
  resolvedChunk,
} from '../session-rows/operations.ts';
import { lockSession, type SessionRow } from '../session-rows/session.ts';
import { type ApprovalRow, approvalEvent, readApproval, viewApproval } from './approvals.ts';
import { type Decider, deciderOf, grantFor, mayDecide, personDecider } from './approvers.ts';
import { addDecision, countInputs, type DecisionResult, type StoredDecision } from './decisions.ts';

// Each is as long as a request may be, and every reader of the approval gets all of them.
const MAX_INPUTS = 3;

/** Before a transaction begins: 403 for a caller that may not decide, 400 if an edited `input` does not match the tool's schema. */
export async function checkDecision(ctx: PoolContext, { operationId, input }: Input<'resolveApproval'>): Promise<void> {
  const row = await readApproval(ctx.db, ctx.organizationId, uuidOf('op', operationId));
  requireApprover(row, deciderOf(ctx));
  if (input === undefined) return;
  const [wrong] = await inputErrors(ctx.organizationId, [{ schema: row.inputSchema, value: input }]);
  if (wrong) throw invalidField('input', `does not match the tool's schema: ${wrong}`);
}

/**
 * Repeating a decision that resolved the approval returns what was recorded; another one is 409 `approval_already_resolved`, as is any
 * after the deadline. 403 `not_an_approver`; 409 `already_decided_by_you` while more approvers are needed; 409 `conflict` if they
 * approve too many different inputs. An edited `input` was judged by `checkDecision`.
 */
export async function resolveApproval(
  ctx: Context,
  input: Input<'resolveApproval'>,
): Promise<Result<'resolveApproval'>> {
  const { organizationId } = ctx;
  if (input.decision === 'denied') {
    if (input.input !== undefined) throw invalidField('input', 'is only allowed with the decision approved');
    if (input.scope === 'session') throw invalidField('scope', 'is only allowed with the decision approved');
  }
  return inTransaction(ctx, async (tx, ctx) => {
    const { sessionId, operationId } = await readApproval(tx, organizationId, uuidOf('op', input.operationId));
    const session = await lockSession(tx, organizationId, sessionId);
    const [row, caller] = await Promise.all([readApproval(tx, organizationId, operationId), currentCaller(tx, ctx)]);
    requireApprover(row, caller);
    const now = ctx.clock.now();
    if (row.status !== 'pending' || (row.expiresAt && row.expiresAt <= now)) {
      if (row.status === input.decision) return { approval: viewApproval(row, caller) };
      // If it is still pending, its deadline has passed: the node runtime marks it as expired soon.
      const status = row.status === 'pending' ? 'expired' : row.status;
      throw new ApiError('approval_already_resolved', `The approval is already ${status}.`);
    }
    const given: StoredDecision = {
      decision: input.decision,
      actor: {
        type: ctx.person ? 'user' : ctx.token ? 'end_user' : 'api_key',
        id: ctx.actor.id,
        name: ctx.actor.name,
        onBehalfOf: input.onBehalfOf ?? null,
      },
      at: now.toISOString(),
      reason: input.reason ?? null,
      ...(input.input !== undefined && { input: input.input }),
      scope: input.scope ?? 'once',
      deciders: caller.identities,
    };
    const before = await ofCurrentApprovers(tx, ctx, row);
    const decided = addDecision({ ...row, decisions: before }, given);
    if (decided === 'repeated') throw refused(row, caller);
    if (countInputs({ ...row, decisions: decided.decisions }) > MAX_INPUTS) {
      const others = `${MAX_INPUTS} different inputs are approved already, and none by as many approvers as it takes.`;
      throw new ApiError('conflict', `${others} Approve one of them, or deny the call.`);
    }
    const edited = decided.agreeing.find(({ input }) => input !== undefined);
    const after: ApprovalRow = { ...row, decisions: [...decided.decisions], editedInput: edited ? edited.input : null };
    if (decided.status) {
      const { reason, actor } = given;
      Object.assign(after, { status: decided.status, reason, resolvedBy: actor, resolvedAt: now });
    }
    await tx.query(sql`
      update approvals set status = ${after.status}, reason = ${after.reason}, decisions = ${JSON.stringify(after.decisions)},
        edited_input = ${edited ? JSON.stringify(edited.input) : null},
        resolved_by = ${after.resolvedBy && JSON.stringify(after.resolvedBy)}, resolved_at = ${after.resolvedAt}
      where organization_id = ${organizationId} and operation_id = ${operationId}`);
    if (decided.status) await finish(tx, ctx, session, row, after, decided, edited !== undefined, input);
    else await showProgress(tx, ctx, session, row, decided, input);
    return { approval: viewApproval(after, caller) };
  });
}

/**
 * The caller as it is now, until the transaction ends: a change of the member waits for the decision, or the decision for the change.
 * 403 for a person who is not a member any more.
 */
async function currentCaller(tx: Tx, ctx: Context): Promise<Decider> {
  if (!ctx.person) return deciderOf(ctx);
  // Stops who locks the row to change it (`lockMember`), and not a sign-in, which notes its time in the row after it wrote to the event log.
  const access = await accessIn(tx, ctx.organizationId, ctx.person.userId, sql`for key share of m`);
  if (!access) throw new ApiError('insufficient_permission', 'You are not a member of this organization.');
  return deciderOf({ ...ctx, person: { ...ctx.person, ...access } });
}

/** What a request for several approvals responds about one of them. */
export function resultOfDecision(
  operationId: string,
  decided: Result<'resolveApproval'> | null,
  error: ApprovalOutcome['error'],
): ApprovalOutcome {
  const { status = null, progress = null } = decided?.approval ?? {};
  return { operationId, status, progress, error };
}

function requireApprover(row: ApprovalRow, caller: Decider): void {
  const refusal = mayDecide(row.by, caller, { ...row, decisions: [] });
  if (refusal) throw new ApiError(refusal.code, refusal.message);
}

function refused(row: ApprovalRow, caller: Decider): ApiError {
  const { code, message } = mayDecide(row.by, caller, row)!;
  return new ApiError(code, message);
}

/** The call may run, or has ended. */
async function finish(
  tx: Tx,
  ctx: Context,
  session: SessionRow,
  row: ApprovalRow,
  after: ApprovalRow,
  { agreeing, progress }: DecisionResult,
  isEdited: boolean,
  input: Input<'resolveApproval'>,
): Promise<void> {
  const { organizationId } = ctx;
  const { sessionId, operationId, name } = row;
  const now = after.resolvedAt!;
  const isDenied = after.status === 'denied';
  // One of several approvers can't allow later calls alone.
  const forSession = !isDenied && agreeing.every(({ scope }) => scope === 'session');
  const grant = grantFor(name, row.by);
  const grants = !isDenied && (row.once || forSession) && !session.grantedTools.includes(grant);
  if (grants) session.grantedTools = [...session.grantedTools, grant];
  const [[call]] = await Promise.all([
    tx.query<Operation>(sql`
      update operations o set status = ${isDenied ? 'denied' : 'ready'}, error = ${isDenied ? denialOf(after.reason) : null},
        ${isEdited ? sql`input = ${JSON.stringify(after.editedInput)},` : empty} finished_at = ${isDenied ? now : null}
      where organization_id = ${organizationId} and operation_id = ${operationId} returning ${operationColumns}`),
    ...(grants
      ? [
          tx.query(sql`
            update sessions set granted_tools = ${session.grantedTools}
            where organization_id = ${organizationId} and session_id = ${sessionId}`),
        ]
      : []),
    tx.query(
      recordEvent(ctx, now, {
        type: 'approval.resolved',
        ...approvalEvent(row),
        changes: {
          status: ['pending', after.status],
          ...(isEdited && inputChange(session, row.input, after.editedInput)),
          ...(forSession && { scope: ['once', 'session'] }),
          ...(progress.required > 1 && { progress: [null, progress] }),
          ...(input.onBehalfOf !== undefined && { onBehalfOf: [null, input.onBehalfOf] }),
        },
      }),
    ),
  ]);
  const resolved = resolvedChunk(operationId, isDenied ? 'denied' : 'approved', after.reason);
  await recordAwaitedResult(tx, ctx, session, isDenied ? [resolved, ...notRunChunks(call!)] : [resolved], {
    kind: 'approval',
    operationId,
    decision: isDenied ? 'denied' : 'approved',
    ...(after.reason !== null && { reason: after.reason }),
  });
}

/** One of several approvals: the call keeps waiting. */
async function showProgress(
  tx: Tx,
  ctx: Context,
  session: SessionRow,
  row: ApprovalRow,
  { progress }: DecisionResult,
  input: Input<'resolveApproval'>,
): Promise<void> {
  const { operationId } = row;
  await tx.query(
    recordEvent(ctx, ctx.clock.now(), {
      type: 'approval.decided',
      ...approvalEvent(row),
      changes: {
        progress: [null, progress],
        ...(input.input !== undefined && inputChange(session, row.input, input.input)),
        ...(input.scope === 'session' && { scope: ['once', 'session'] }),
        ...(input.onBehalfOf !== undefined && { onBehalfOf: [null, input.onBehalfOf] }),
      },
    }),
  );
  const shown = { kind: 'approval' as const, operationId, decision: 'approved' as const, progress };
  await showWhileWaiting(tx, ctx, session, [decidedChunk(operationId, progress)], shown);
}

/** What belongs to an end user is not in the event log, which is never erased. */
function inputChange({ endUserId }: SessionRow, before: unknown, after: unknown) {
  return withoutValues({ input: [before, after] }, endUserId === null ? [] : ['input']);
}

/** The result of a denied call, for the model. */
function denialOf(reason: string | null): string {
  return reason === null ? 'The approver denied this call.' : `The approver denied this call: ${reason}`;
}

/**
 * The decisions of those who may still decide. Someone who has left the organization or lost the right, or a key that was deleted or has
 * expired, does not count any more.
 */
async function ofCurrentApprovers(tx: Tx, ctx: Context, row: ApprovalRow): Promise<StoredDecision[]> {
  const { decisions, by } = row;
  if (decisions.length === 0) return decisions;
  const made = decisions.flatMap(({ deciders }) => deciders);
  const [people, keys] = await Promise.all([
    tx.query<Access & { userId: string }>(sql`
      select m.user_id as "userId", ${accessColumns('m')} from members m
      where m.organization_id = ${ctx.organizationId} and m.user_id = any(${userIdsIn(made)}::uuid[])`),
    tx.query<StoredGrant & { keyId: string }>(sql`
      select key_id as "keyId", permission, scopes from api_keys
      where organization_id = ${ctx.organizationId} and key_id = any(${keyIdsIn(made)}::uuid[])
        and deleted_at is null and (expires_at is null or expires_at > now())
        and (environments is null or ${row.environment} = any(environments))
        and (agents is null or ${row.agentId} = any(agents))`),
  ]);
  const members = new Map(people.map(({ userId, ...access }) => [userIdentity(userId), access]));
  const deciding = keys.filter((key) => scopesOf(grantOf(key)).has('approvals:decide'));
  const live = new Set(deciding.map(({ keyId }) => keyIdentity(keyId)));
  return decisions.filter(({ deciders }) => {
    const decider = currentDecider(deciders, members, live);
    return decider !== undefined && mayDecide(by, decider, { ...row, decisions: [] }) === null;
  });
}

function currentDecider(
  identities: readonly string[],
  members: ReadonlyMap<string, Access>,
  keys: ReadonlySet<string>,
): Decider | undefined {
  const access = members.get(identities[0]!);
  if (access) return personDecider(identities, access);
  const key = identities.find((identity) => identity.startsWith('api_key:'));
  if (key === undefined || !keys.has(key)) return undefined;
  return { type: key === identities[0] ? 'key' : 'endUser', canDecide: true, identities };
}
