// Changes to an organization itself, by people.
import { type Input, permissionOfRole, type Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import type { SignIn, Visitor } from '../people/identity.ts';
import { addMember, membershipsOf } from '../people/memberships.ts';
import { actorOf, userResource, visitorSource } from '../people/records.ts';
import type { Platform } from '../platform.ts';
import { createOrganization } from './organizations.ts';

/** Renames it. The same name changes nothing. */
export async function updateOrganization(
  ctx: Context,
  { name }: Input<'updateOrganization'>,
): Promise<Result<'updateOrganization'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const { organizationId } = ctx;
    const [before] = await tx.query<{ name: string; createdAt: Date }>(sql`
      select name, created_at as "createdAt" from organizations where organization_id = ${organizationId}
      for no key update`);
    const organization = {
      organizationId: formatId('org', organizationId),
      name,
      createdAt: before!.createdAt.toISOString(),
    };
    if (before!.name === name) return { organization };
    await tx.query(sql`update organizations set name = ${name} where organization_id = ${organizationId}`);
    await tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'organization.updated',
        resource: { type: 'organization', id: organization.organizationId },
        changes: { name: [before!.name, name] },
      }),
    );
    return { organization };
  });
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
    if (!memberships.some(({ role }) => permissionOfRole[role] === 'admin')) {
      throw new ApiError('insufficient_permission', 'Only admins and owners of an organization can do this.');
    }
    const { organizationId } = await createOrganization(tx, name, now);
    if ((await addMember(tx, organizationId, person.userId, 'owner', now)) === 'gone') {
      throw new ApiError('signed_out', 'Sign in first.');
    }
    const source = visitorSource(organizationId, actorOf(person), visitor);
    await tx.query(
      recordEvent(source, now, {
        type: 'organization.created',
        resource: { type: 'organization', id: formatId('org', organizationId) },
        changes: { name: [null, name] },
      }),
    );
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
