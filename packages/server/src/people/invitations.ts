// Links that let people in: invitations, and the setup link of an installation; and links that set a new password. People pass them on
// themselves: no mail server is required. Following a link is in links.ts.
import type { Input, Invitation, OperatorResult, Result, Role } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { deleteAcross } from '../db/delete-in-batches.ts';
import { type EventSource, recordEvent, systemActor } from '../events/record.ts';
import { hashSecret, newSecret } from '../keys/secret.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Actor, type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import type { Platform } from '../platform.ts';
import { currentRole, lockMember, requireRank } from './members.ts';
import {
  type Access,
  accessColumns,
  changedAccess,
  noLimits,
  storedRole,
  viewCanDecide,
  type WantedLimits,
} from './memberships/can-decide.ts';
import { hasMembers, lockOrganization, membershipsOf } from './memberships/memberships.ts';
import { userResource } from './records.ts';

const HOUR_MS = 3600_000;
// Long enough for someone who is away for some days; short, because it opens the organization to anyone who finds it.
const INVITATION_MS = 7 * 24 * HOUR_MS;
const SETUP_MS = 24 * HOUR_MS;
const RESET_MS = 24 * HOUR_MS;

interface Row extends Access {
  invitationId: string;
  email: string | null;
  name: string | null;
  invitedBy: Actor;
  expiresAt: Date;
  createdAt: Date;
}

/** The URL of a link. The token is in the fragment, which is not sent to servers and so is in no log of a proxy. */
export function linkOf(publicUrl: URL, token: string): string {
  return `${publicUrl.origin}/console/link#${token}`;
}

/** Invitations that can still be accepted, newest first. */
export async function listInvitations(
  ctx: Context,
  input: Input<'listInvitations'>,
): Promise<Result<'listInvitations'>> {
  const request = pageRequest(`invitations:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select i.invitation_id as "invitationId", ${accessColumns('i')}, i.email, i.name, i.invited_by as "invitedBy",
      i.expires_at as "expiresAt", i.created_at as "createdAt"
    from invitations i where i.organization_id = ${ctx.organizationId} and not i.is_setup and i.expires_at > ${ctx.clock.now()}
      ${request.after === undefined ? empty : sql`and i.invitation_id < ${request.after}`}
    order by i.invitation_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.invitationId, invitationFromRow);
}

/** 403 unless an owner invites an owner; 400 as `changedAccess`. */
export async function createInvitation(
  ctx: Context,
  input: Input<'createInvitation'>,
): Promise<Result<'createInvitation'>> {
  const { token, ...row } = await inTransaction(ctx, async (tx, ctx) => {
    await lockOrganization(tx, ctx.organizationId);
    requireRank(await currentRole(tx, ctx), input.role);
    return insertInvitation(tx, ctx, ctx.clock.now(), input);
  });
  return { invitation: invitationFromRow(row), link: linkOf(ctx.publicUrl(), token) };
}

/** For a request, or for the operator on the host. 409 if the email is a member's, 400 as `changedAccess`. */
export async function insertInvitation(
  tx: Tx,
  source: EventSource,
  now: Date,
  { role, canDecide, email, name }: { role: Role; canDecide?: WantedLimits; email?: string; name?: string },
): Promise<Row & { token: string }> {
  if (email !== undefined) await requireNoMember(tx, source.organizationId, email.toLowerCase());
  const access = await changedAccess(tx, source.organizationId, { role, ...noLimits }, { canDecide });
  const limits = viewCanDecide(access);
  const invitationId = newUuid();
  const token = newSecret(source.organizationId, invitationId, 'sbi');
  const row: Row = {
    ...access,
    invitationId,
    email: email?.toLowerCase() ?? null,
    name: name ?? null,
    invitedBy: source.actor,
    expiresAt: new Date(now.getTime() + INVITATION_MS),
    createdAt: now,
  };
  await insert(tx, source.organizationId, row, token, false);
  await tx.query(
    recordEvent(source, now, {
      type: 'user.invited',
      resource: { type: 'invitation', id: formatId('inv', invitationId) },
      changes: {
        role: [null, role],
        ...(limits && { canDecide: [null, limits] }),
        ...(email !== undefined && { email: [null, email] }),
      },
    }),
  );
  return { ...row, token };
}

async function requireNoMember(tx: Tx, organizationId: string, email: string): Promise<void> {
  const [member] = await tx.query<Access & { name: string }>(sql`
    select u.name, ${accessColumns('m')} from members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} and u.email = ${email}`);
  if (!member) return;
  throw new ApiError('conflict', `${member.name} is already a member, as ${member.role}. Change the role instead.`);
}

/** Withdraws it: its link is invalid from then on. */
export async function deleteInvitation(
  ctx: Context,
  input: Input<'deleteInvitation'>,
): Promise<Result<'deleteInvitation'>> {
  await inTransaction(ctx, async (tx, ctx) => {
    await lockOrganization(tx, ctx.organizationId);
    const role = await currentRole(tx, ctx);
    const [row] = await tx.query<Access>(sql`
      delete from invitations as i
      where i.organization_id = ${ctx.organizationId} and i.invitation_id = ${uuidOf('inv', input.invitationId)}
        and not i.is_setup
      returning ${accessColumns('i')}`);
    if (!row) throw notFound('invitation');
    requireRank(role, row.role);
    await tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'user.invitation_withdrawn',
        resource: { type: 'invitation', id: input.invitationId },
      }),
    );
  });
  return { invitationId: input.invitationId, deleted: true };
}

/**
 * Creates a link by which a member sets a new password. 403 if the member outranks the caller, or is in another organization too:
 * otherwise an admin of one could get into the other.
 */
export async function resetPassword(ctx: Context, input: Input<'resetPassword'>): Promise<Result<'resetPassword'>> {
  const { token, expiresAt } = await inTransaction(ctx, async (tx, ctx) => {
    await lockOrganization(tx, ctx.organizationId);
    const { userId, role } = await lockMember(tx, ctx.organizationId, uuidOf('usr', input.userId));
    requireRank(await currentRole(tx, ctx), role);
    if ((await membershipsOf(tx, userId)).length > 1) {
      throw new ApiError(
        'insufficient_permission',
        'This person is in other organizations too. Only the operator can create the link, with `signalbox users reset-password` on the host.',
      );
    }
    return insertReset(tx, ctx, ctx.clock.now(), userId, ctx.callerId);
  });
  return { link: linkOf(ctx.publicUrl(), token), expiresAt: expiresAt.toISOString() };
}

/** For a request, or for the operator on the host. An older link of the person is invalid from then on. */
export async function insertReset(
  tx: Tx,
  source: EventSource,
  now: Date,
  userId: string,
  madeBy: string | null,
): Promise<{ token: string; expiresAt: Date }> {
  const { organizationId } = source;
  const resetId = newUuid();
  const token = newSecret(organizationId, resetId, 'sbr');
  const expiresAt = new Date(now.getTime() + RESET_MS);
  await tx.query(sql`delete from password_resets where organization_id = ${organizationId} and user_id = ${userId}`);
  await tx.query(sql`
    insert into password_resets (organization_id, password_reset_id, user_id, made_by, token_hash, expires_at, created_at)
    values (${organizationId}, ${resetId}, ${userId}, ${madeBy}, ${hashSecret(token)}, ${expiresAt}, ${now})`);
  await tx.query(recordEvent(source, now, { type: 'user.password_reset_requested', resource: userResource(userId) }));
  return { token, expiresAt };
}

/**
 * The token of a link that sets the organization up, or undefined if it has members. Older links stay valid, because the nodes of
 * an installation each print one at their start, unless `voidsOlder` is set, for links that have leaked.
 */
export async function createSetupToken(
  ctx: Pick<Context, 'db' | 'organizationId'>,
  now: Date,
  { voidsOlder = false } = {},
): Promise<string | undefined> {
  return inTransaction(ctx, async (tx, ctx) => {
    const { organizationId } = ctx;
    await lockOrganization(tx, organizationId);
    if (await hasMembers(tx, organizationId)) return undefined;
    if (voidsOlder) await tx.query(sql`delete from invitations where organization_id = ${organizationId} and is_setup`);
    const invitationId = newUuid();
    const token = newSecret(organizationId, invitationId, 'sbi');
    const row: Row = {
      invitationId,
      role: 'owner',
      ...noLimits,
      email: null,
      name: null,
      invitedBy: systemActor,
      expiresAt: new Date(now.getTime() + SETUP_MS),
      createdAt: now,
    };
    await insert(tx, organizationId, row, token, true);
    return token;
  });
}

/** For the operator of the installation, whose earlier links become void. 409 if the organization has people. */
export async function createSetupLink(ctx: Context): Promise<OperatorResult<'createSetupLink'>> {
  const now = ctx.clock.now();
  const token = await createSetupToken(ctx, now, { voidsOlder: true });
  if (token === undefined)
    throw new ApiError('conflict', 'The organization has people already: they invite others in the console.');
  return { link: linkOf(ctx.publicUrl(), token), expiresAt: new Date(now.getTime() + SETUP_MS).toISOString() };
}

/** Expired links are already invalid; this frees their space. */
export async function dropExpiredLinks(
  { shards }: Pick<Platform, 'shards'>,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  await deleteAcross(
    shards,
    'deleting expired invitations',
    signal,
    (limit, within) => sql`
      delete from invitations i using (
        select organization_id, invitation_id from invitations
        where expires_at <= ${now} ${within()} order by expires_at ${limit}) old
      where i.organization_id = old.organization_id ${within(sql`i.organization_id`)} and i.invitation_id = old.invitation_id`,
  );
  await deleteAcross(
    shards,
    'deleting expired password resets',
    signal,
    (limit, within) => sql`
      delete from password_resets r using (
        select organization_id, password_reset_id from password_resets
        where expires_at <= ${now} ${within()} order by expires_at ${limit}) old
      where r.organization_id = old.organization_id ${within(sql`r.organization_id`)} and r.password_reset_id = old.password_reset_id`,
  );
}

function insert(tx: Tx, organizationId: string, row: Row, token: string, isSetup: boolean): Promise<number> {
  return tx.execute(sql`
    insert into invitations (organization_id, invitation_id, is_setup, role, decides_agents, decides_environments, email, name,
      invited_by, token_hash, expires_at, created_at)
    values (${organizationId}, ${row.invitationId}, ${isSetup}, ${storedRole(row)}, ${row.decidesAgents}, ${row.decidesEnvironments},
      ${row.email}, ${row.name},
      ${JSON.stringify(row.invitedBy)}, ${hashSecret(token)}, ${row.expiresAt}, ${row.createdAt})`);
}

function invitationFromRow(row: Row): Invitation {
  return {
    invitationId: formatId('inv', row.invitationId),
    role: row.role,
    canDecide: viewCanDecide(row),
    email: row.email,
    name: row.name,
    invitedBy: row.invitedBy.name,
    expiresAt: row.expiresAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
  };
}
