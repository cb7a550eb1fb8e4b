// The people of an organization. Only an owner adds, changes or removes owners, and the last owner stays. A person without an organization
// is deleted, with all sign-ins. Someone who is removed, or gets a lower role, must not return by a link that they created before.
import { type Input, type Member, type Result, type Role, roles } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { changesBetween, type EventSource, recordEvent } from '../events/record.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { type Access, accessColumns, changedAccess, storedRole, viewCanDecide } from './memberships/can-decide.ts';
import { accessIn, countOwners, lockOrganization, membershipsOf } from './memberships/memberships.ts';
import { userResource } from './records.ts';

interface Row extends Access {
  userId: string;
  name: string;
  email: string;
  joinedAt: Date;
  lastSignedInAt: Date | null;
}

/** Newest people first. */
export async function listMembers(ctx: Context, input: Input<'listMembers'>): Promise<Result<'listMembers'>> {
  const request = pageRequest(`members:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select ${columns()} from members m join users u on u.id = m.user_id
    where m.organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and m.user_id < ${request.after}`}
    order by m.user_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.userId, memberFromRow);
}

/**
 * Changes the role and what the member can decide. 403 if only an owner may, 409 `last_owner`, 400 as `changedAccess`. What is the same
 * changes nothing.
 */
export async function updateMember(ctx: Context, input: Input<'updateMember'>): Promise<Result<'updateMember'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    await lockOrganization(tx, ctx.organizationId);
    const before = await lockMember(tx, ctx.organizationId, uuidOf('usr', input.userId));
    const after: Row = { ...before, ...(await changedAccess(tx, ctx.organizationId, before, input)) };
    const [newRole, newLimits] = [changesOf(before, after, 'role'), changesOf(before, after, 'canDecide')];
    if (!newRole && !newLimits) return { member: memberFromRow(before) };
    requireRank(await currentRole(tx, ctx), before.role, after.role);
    if (newRole && before.role === 'owner') await requireAnotherOwner(tx, ctx.organizationId);
    await tx.query(sql`
      update members
      set role = ${storedRole(after)}, decides_agents = ${after.decidesAgents},
        decides_environments = ${after.decidesEnvironments}
      where organization_id = ${ctx.organizationId} and user_id = ${before.userId}`);
    if (roles.indexOf(after.role) < roles.indexOf(before.role)) {
      await voidLinksOf(tx, ctx.organizationId, before.userId);
    }
    const now = ctx.clock.now();
    const resource = userResource(before.userId);
    if (newRole) await tx.query(recordEvent(ctx, now, { type: 'user.role_changed', resource, changes: newRole }));
    if (newLimits) {
      await tx.query(recordEvent(ctx, now, { type: 'user.can_decide_changed', resource, changes: newLimits }));
    }
    return { member: memberFromRow(after) };
  });
}

function changesOf(before: Row, after: Row, field: 'role' | 'canDecide') {
  return changesBetween<Member>(memberFromRow(before), memberFromRow(after), [field]);
}

/** Removes a person at once, on every node. 403 if only an owner may, 409 `last_owner`. */
export async function removeMember(ctx: Context, input: Input<'removeMember'>): Promise<Result<'removeMember'>> {
  const userId = uuidOf('usr', input.userId);
  await inTransaction(ctx, async (tx, ctx) => {
    await lockOrganization(tx, ctx.organizationId);
    const member = await lockMember(tx, ctx.organizationId, userId);
    requireRank(await currentRole(tx, ctx), member.role);
    await deleteMember(tx, ctx, ctx.clock.now(), member);
  });
  return { userId: input.userId, deleted: true };
}

/** For a request, or for the operator on the host; the caller has locked the organization. Throws 409 `last_owner`. */
export async function deleteMember(
  tx: Tx,
  source: EventSource,
  now: Date,
  { userId, name, email, ...access }: Row,
): Promise<void> {
  const { organizationId } = source;
  const { role } = access;
  const canDecide = viewCanDecide(access);
  if (role === 'owner') await requireAnotherOwner(tx, organizationId);
  // Locked before checking whether the person has another organization: joining one locks it too.
  await tx.query(sql`select 1 from users where id = ${userId} for update`);
  await tx.query(sql`delete from members where organization_id = ${organizationId} and user_id = ${userId}`);
  await tx.query(sql`delete from password_resets where organization_id = ${organizationId} and user_id = ${userId}`);
  await voidLinksOf(tx, organizationId, userId);
  await tx.query(
    recordEvent(source, now, {
      type: 'user.removed',
      resource: userResource(userId),
      changes: {
        name: [name, null],
        email: [email, null],
        role: [role, null],
        ...(canDecide && { canDecide: [canDecide, null] }),
      },
    }),
  );
  if ((await membershipsOf(tx, userId)).length === 0) await tx.query(sql`delete from users where id = ${userId}`);
}

/** Deletes the links that a person created, and therefore knows: invitations and password resets. */
async function voidLinksOf(tx: Tx, organizationId: string, userId: string): Promise<void> {
  await tx.query(sql`
    delete from invitations where organization_id = ${organizationId} and invited_by->>'id' = ${formatId('usr', userId)}`);
  await tx.query(sql`
    delete from password_resets where organization_id = ${organizationId} and made_by = ${userId}`);
}

/** A member, whose row is locked until the transaction ends; 404 for anyone else. */
export async function lockMember(tx: Tx, organizationId: string, userId: string): Promise<Row> {
  const [row] = await tx.query<Row>(sql`
    select ${columns()} from members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} and m.user_id = ${userId} for update of m`);
  if (!row) throw notFound('person in this organization');
  return row;
}

/** Throws 403 unless the role `actor` may grant and revoke each of `others`: an admin may all but `owner`. */
export function requireRank(actor: Role, ...others: Role[]): void {
  if (actor === 'owner' || others.every((role) => role !== 'owner')) return;
  throw new ApiError('insufficient_permission', 'Only an owner can add, change or remove an owner.');
}

/**
 * The caller's current role; call it with the organization locked. Someone who is removed or loses the role at the same moment must
 * neither act by the old one nor leave a link behind.
 */
export async function currentRole(tx: Tx, ctx: Context): Promise<Role> {
  const access = await accessIn(tx, ctx.organizationId, ctx.callerId!);
  if (!access || roles.indexOf(access.role) < roles.indexOf('admin')) {
    throw new ApiError('insufficient_permission', 'Your role has just been changed.');
  }
  return access.role;
}

async function requireAnotherOwner(tx: Tx, organizationId: string): Promise<void> {
  if ((await countOwners(tx, organizationId)) > 1) return;
  throw new ApiError('last_owner', 'This is the last owner. Make someone else an owner first.');
}

function columns(): Sql {
  return sql`m.user_id as "userId", u.name, u.email, ${accessColumns('m')}, m.joined_at as "joinedAt",
    m.last_signed_in_at as "lastSignedInAt"`;
}

function memberFromRow(row: Row): Member {
  return {
    userId: formatId('usr', row.userId),
    name: row.name,
    email: row.email,
    role: row.role,
    canDecide: viewCanDecide(row),
    joinedAt: row.joinedAt.toISOString(),
    lastSignedInAt: row.lastSignedInAt?.toISOString() ?? null,
  };
}
