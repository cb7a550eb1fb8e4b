// Following a link. Its token names the organization and what it opens, as an API key does, and only its hash is stored. Accepting it
// deletes the row, so of two people at once only one succeeds. Everything happens in the transaction of the acceptance: a mistake in the
// form does not use up the link.
import type { Role } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { parseSecret, type SecretKind, sameHash } from '../keys/secret.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { hashPassword } from './hashing.ts';
import type { SignIn, Visitor } from './identity.ts';
import { type Access, accessColumns, viewCanDecide } from './memberships/can-decide.ts';
import { accessIn, addMember, hasMembers, lockOrganization, membershipsOf } from './memberships/memberships.ts';
import { requireGoodPassword } from './password.ts';
import { actorOf, userResource, visitorSource } from './records.ts';

/** What a link opens, as its page shows it. */
export interface Link {
  type: 'setup' | 'invitation' | 'passwordReset';
  organizationId: string;
  organizationName: string;
  role: Role | null;
  email: string | null;
  name: string | null;
  expiresAt: Date;
}

export interface Acceptance {
  token: string;
  name?: string;
  email?: string;
  password?: string;
  organizationName?: string;
}

interface Parsed {
  kind: SecretKind;
  organizationId: string;
  id: string;
  hash: Buffer;
}

interface InvitationRow extends Access {
  isSetup: boolean;
  email: string | null;
  name: string | null;
  expiresAt: Date;
  tokenHash: Buffer;
  organizationName: string;
}

interface ResetRow {
  name: string;
  email: string;
  expiresAt: Date;
  tokenHash: Buffer;
  organizationName: string;
}

/** Throws 404 `link_invalid` for a link that was used, was withdrawn, has expired or never existed. */
export async function readLink({ db, clock }: Pick<Platform, 'db' | 'clock'>, token: string): Promise<Link> {
  const parsed = parse(token);
  const now = clock.now();
  const { organizationId } = parsed;
  if (parsed.kind === 'sbr') {
    const { organizationName, name, email, expiresAt } = await findReset(db, parsed, now);
    return { type: 'passwordReset', organizationId, organizationName, role: null, email, name, expiresAt };
  }
  const { isSetup, organizationName, role, email, name, expiresAt } = await findInvitation(db, parsed, now);
  return { type: isSetup ? 'setup' : 'invitation', organizationId, organizationName, role, email, name, expiresAt };
}

/**
 * Adds the visitor as a new person, or as the one who is `signedIn` (then without name, email and password). `isNewSignIn`: whether a
 * sign-in has to be started, or the current one stays.
 */
export async function acceptLink(
  platform: Pick<Platform, 'db' | 'clock'>,
  visitor: Visitor,
  signedIn: SignIn | undefined,
  given: Acceptance,
): Promise<{ userId: string; isNewSignIn: boolean }> {
  const link = await readLink(platform, given.token);
  const parsed = parse(given.token);
  if (link.type === 'passwordReset') return acceptReset(platform, visitor, parsed, link, given);
  if (link.type === 'setup' && given.organizationName === undefined)
    throw invalidField('organizationName', 'is required');
  if (link.type !== 'setup' && given.organizationName !== undefined) {
    throw invalidField('organizationName', 'is only allowed with a setup link');
  }
  return signedIn && given.password === undefined
    ? acceptAsKnown(platform, visitor, parsed, link, signedIn, given)
    : acceptAsNew(platform, visitor, parsed, link, given);
}

async function acceptAsKnown(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  visitor: Visitor,
  parsed: Parsed,
  link: Link,
  { userId, name, email }: SignIn,
  given: Acceptance,
): Promise<{ userId: string; isNewSignIn: boolean }> {
  if (link.email !== null && link.email !== email) {
    throw new ApiError('conflict', `This invitation is for ${link.email}; you are signed in as ${email}.`);
  }
  await db.transaction((tx) => join(tx, clock.now(), visitor, parsed, { userId, name, email }, given.organizationName));
  return { userId, isNewSignIn: false };
}

async function acceptAsNew(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  visitor: Visitor,
  parsed: Parsed,
  link: Link,
  { name = link.name ?? undefined, email: typed, password, organizationName }: Acceptance,
): Promise<{ userId: string; isNewSignIn: boolean }> {
  const email = (typed ?? link.email)?.toLowerCase();
  if (name === undefined) throw invalidField('name', 'is required');
  if (email === undefined) throw invalidField('email', 'is required');
  if (password === undefined) throw invalidField('password', 'is required');
  if (link.email !== null && email !== link.email) throw invalidField('email', `must be ${link.email}, as invited`);
  requireGoodPassword(password, { email, name });
  const hash = await hashPassword(password);
  const userId = newUuid();
  const now = clock.now();
  await db.transaction(async (tx) => {
    const created = await tx.execute(sql`
      insert into users (id, name, email, email_verified, created_at, updated_at)
      values (${userId}, ${name}, ${email}, false, ${now}, ${now}) on conflict (email) do nothing`);
    if (created === 0) {
      throw new ApiError('email_taken', 'An account with this email already exists. Sign in, and open the link again.');
    }
    await setPassword(tx, userId, hash, now);
    await join(tx, now, visitor, parsed, { userId, name, email }, organizationName);
  });
  return { userId, isNewSignIn: true };
}

/** Uses up the invitation. Of two at once, the second finds no row. */
async function join(
  tx: Tx,
  now: Date,
  visitor: Visitor,
  { organizationId, id, hash }: Parsed,
  person: { userId: string; name: string; email: string },
  organizationName: string | undefined,
): Promise<void> {
  // Locks the organization first, as removing people and creating links do: in another order two transactions could deadlock.
  await lockOrganization(tx, organizationId);
  const [used] = await tx.query<Access & { isSetup: boolean }>(sql`
    delete from invitations as i
    where i.organization_id = ${organizationId} and i.invitation_id = ${id} and i.token_hash = ${hash}
      and i.expires_at > ${now}
    returning i.is_setup as "isSetup", ${accessColumns('i')}`);
  if (!used) throw invalid();
  const source = visitorSource(organizationId, actorOf(person), visitor);
  if (used.isSetup) await setUp(tx, now, source, organizationName!);
  const result = await addMember(tx, organizationId, person.userId, used, now);
  if (result === 'already') throw new ApiError('conflict', 'You are already a member of this organization.');
  if (result === 'gone') throw new ApiError('signed_out', 'Sign in, and open the link again.');
  const canDecide = viewCanDecide(used);
  await tx.query(
    recordEvent(source, now, {
      type: 'user.joined',
      resource: userResource(person.userId),
      changes: {
        name: [null, person.name],
        email: [null, person.email],
        role: [null, used.role],
        ...(canDecide && { canDecide: [null, canDecide] }),
      },
    }),
  );
}

async function setUp(tx: Tx, now: Date, source: ReturnType<typeof visitorSource>, name: string): Promise<void> {
  const { organizationId } = source;
  // A person joined in the meantime, by an invitation created on the host.
  if (await hasMembers(tx, organizationId)) throw invalid();
  const [before] = await tx.query<{ name: string }>(
    sql`select name from organizations where organization_id = ${organizationId}`,
  );
  await tx.query(sql`update organizations set name = ${name} where organization_id = ${organizationId}`);
  await tx.query(
    recordEvent(source, now, {
      type: 'organization.updated',
      resource: { type: 'organization', id: formatId('org', organizationId) },
      changes: { name: [before!.name, name] },
    }),
  );
}

async function acceptReset(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  visitor: Visitor,
  { organizationId, id, hash }: Parsed,
  link: Link,
  { password }: Acceptance,
): Promise<{ userId: string; isNewSignIn: boolean }> {
  if (password === undefined) throw invalidField('password', 'is required');
  requireGoodPassword(password, { email: link.email!, name: link.name! });
  const passwordHash = await hashPassword(password);
  const now = clock.now();
  const userId = await db.transaction(async (tx) => {
    await lockOrganization(tx, organizationId);
    const [used] = await tx.query<{ userId: string; madeBy: string | null }>(sql`
      delete from password_resets as r
      where r.organization_id = ${organizationId} and r.password_reset_id = ${id} and r.token_hash = ${hash}
        and r.expires_at > ${now}
      returning r.user_id as "userId", r.made_by as "madeBy"`);
    if (!used || (await accessIn(tx, organizationId, used.userId)) === undefined) throw invalid();
    // A concurrent sign-in with the old password is either seen below or sees the new password (identity.ts).
    await tx.query(sql`select 1 from users where id = ${used.userId} for update`);
    const memberships = await membershipsOf(tx, used.userId);
    // The person joined another organization since the link was created; the admin has no rights there.
    if (used.madeBy !== null && memberships.length > 1) throw invalid();
    await setPassword(tx, used.userId, passwordHash, now);
    await endOtherWaysIn(tx, used.userId);
    const actor = actorOf({ userId: used.userId, name: link.name! });
    for (const one of memberships) {
      await tx.query(
        recordEvent(visitorSource(one.organizationId, actor, visitor), now, {
          type: 'user.password_reset',
          resource: userResource(used.userId),
        }),
      );
    }
    return used.userId;
  });
  return { userId, isNewSignIn: true };
}

/** Deletes every other way in, so that an intruder, or the creator of an earlier link, can't return by one. */
async function endOtherWaysIn(tx: Tx, userId: string): Promise<void> {
  await tx.query(sql`delete from sign_ins where user_id = ${userId}`);
  await tx.query(sql`delete from passkeys where user_id = ${userId}`);
  await tx.query(sql`delete from accounts where user_id = ${userId} and provider_id <> 'credential'`);
}

/** As better-auth stores it: an account of the provider "credential", named by the person's own id. */
async function setPassword(tx: Tx, userId: string, hash: string, now: Date): Promise<void> {
  await tx.query(sql`
    insert into accounts as a (id, user_id, provider_id, account_id, password, created_at, updated_at)
    values (${newUuid()}, ${userId}, 'credential', ${userId}, ${hash}, ${now}, ${now})
    on conflict (provider_id, account_id) do update set password = excluded.password, updated_at = excluded.updated_at`);
}

async function findInvitation(db: Db, { organizationId, id, hash }: Parsed, now: Date): Promise<InvitationRow> {
  const [row] = await db.query<InvitationRow>(sql`
    select i.is_setup as "isSetup", ${accessColumns('i')}, i.email, i.name, i.expires_at as "expiresAt", i.token_hash as "tokenHash",
      o.name as "organizationName"
    from invitations i join organizations o on o.organization_id = i.organization_id
    where i.organization_id = ${organizationId} and i.invitation_id = ${id} and i.expires_at > ${now}
      and not (i.is_setup and exists (select 1 from members m where m.organization_id = ${organizationId}))`);
  if (!row || !sameHash(row.tokenHash, hash)) throw invalid();
  return row;
}

async function findReset(db: Db, { organizationId, id, hash }: Parsed, now: Date): Promise<ResetRow> {
  const [row] = await db.query<ResetRow>(sql`
    select u.name, u.email, r.expires_at as "expiresAt",
      r.token_hash as "tokenHash", o.name as "organizationName"
    from password_resets r
    join organizations o on o.organization_id = r.organization_id
    join users u on u.id = r.user_id
    where r.organization_id = ${organizationId} and r.password_reset_id = ${id} and r.expires_at > ${now}`);
  if (!row || !sameHash(row.tokenHash, hash)) throw invalid();
  return row;
}

function parse(token: string): Parsed {
  for (const kind of ['sbi', 'sbr'] as const) {
    const secret = parseSecret(token, kind);
    if (secret) return { kind, organizationId: secret.organizationId, id: secret.keyId, hash: secret.hash };
  }
  throw invalid();
}

function invalid(): ApiError {
  return new ApiError('link_invalid', 'This link was used, withdrawn or has expired. Ask for a new one.');
}
