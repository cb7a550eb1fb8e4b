// An organization itself: its name, and the web pages that may call with its tokens.
import { type Input, type Organization, type Result, scopesOfRole } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { changesBetween, recordEvent } from '../events/record.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import { problemWithOrigin } from '../lib/origins.ts';
import type { SignIn, Visitor } from '../people/identity.ts';
import { noLimits } from '../people/memberships/can-decide.ts';
import { addMember, membershipsOf } from '../people/memberships/memberships.ts';
import { actorOf, userResource, visitorSource } from '../people/records.ts';
import type { Platform } from '../platform.ts';
import { foundOrganization } from './organizations.ts';

/** Renames it. The same name changes nothing. */
export async function updateOrganization(
  ctx: Context,
  { name }: Input<'updateOrganization'>,
): Promise<Result<'updateOrganization'>> {
  return changeOrganization(ctx, { name });
}

/** Replaces the web pages that session tokens can be used from. 400 for what is not an origin. */
export async function setOrganization(
  ctx: Context,
  { allowedOrigins }: Input<'setOrganization'>,
): Promise<Result<'setOrganization'>> {
  for (const [index, origin] of allowedOrigins.entries()) {
    const problem = problemWithOrigin(origin);
    if (problem) throw invalidField(`allowedOrigins[${index}]`, problem);
  }
  return changeOrganization(ctx, { allowedOrigins });
}

export async function getOrganization(ctx: Context): Promise<Result<'getOrganization'>> {
  return { organization: viewOrganization(ctx, await readOrganization(ctx.db, ctx, empty)) };
}

export interface Row {
  name: string;
  allowedOrigins: string[];
  createdAt: Date;
}

async function changeOrganization(ctx: Context, change: Partial<Row>): Promise<{ organization: Organization }> {
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await readOrganization(tx, ctx, sql`for no key update`);
    const after = { ...before, ...change };
    const organization = viewOrganization(ctx, after);
    const changes = changesBetween(before, after, ['name', 'allowedOrigins']);
    if (!changes) return { organization };
    await tx.query(sql`
      update organizations set name = ${after.name}, allowed_origins = ${after.allowedOrigins}
      where organization_id = ${ctx.organizationId}`);
    await tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'organization.updated',
        resource: { type: 'organization', id: organization.organizationId },
        changes,
      }),
    );
    return { organization };
  });
}

async function readOrganization(db: Queryable, { organizationId }: Context, lock: Sql): Promise<Row> {
  const [row] = await db.query<Row>(sql`
    select name, allowed_origins as "allowedOrigins", created_at as "createdAt"
    from organizations where organization_id = ${organizationId} ${lock}`);
  return row!;
}

export function viewOrganization(
  { organizationId, prices }: Pick<Context, 'organizationId' | 'prices'>,
  { name, allowedOrigins, createdAt }: Row,
): Organization {
  return {
    organizationId: formatId('org', organizationId),
    name,
    allowedOrigins,
    pricesDate: prices.builtInDate,
    createdAt: createdAt.toISOString(),
  };
}

/**
 * Creates an organization that the person owns. 403 unless they are an admin or owner of another: it would be a way around the role
 * that they were given, and a way to keep access after being removed.
 */
export async function createOrganizationForPerson(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  visitor: Visitor,
  person: SignIn,
  name: string,
): Promise<string> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    // A concurrent removal of the person waits for this, or this for it: deleteMember locks the same row.
    await tx.query(sql`select 1 from users where id = ${person.userId} for share`);
    const memberships = await membershipsOf(tx, person.userId);
    if (!memberships.some(({ role }) => scopesOfRole[role].has('organization:manage'))) {
      throw new ApiError('insufficient_permission', 'Only admins and owners of an organization can do this.');
    }
    const by = { actor: actorOf(person), ...visitor };
    const { organizationId } = await foundOrganization(tx, by, now, name);
    if ((await addMember(tx, organizationId, person.userId, { role: 'owner', ...noLimits }, now)) === 'gone') {
      throw new ApiError('signed_out', 'Sign in first.');
    }
    const source = visitorSource(organizationId, actorOf(person), visitor);
    await tx.query(
      recordEvent(source, now, {
        type: 'user.joined',
        resource: userResource(person.userId),
        changes: { name: [null, person.name], email: [null, person.email], role: [null, 'owner'] },
      }),
    );
    return organizationId;
  });
}
