// The organizations of a person, and what they can do in each.
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../../db/db.ts';
import { type Access, accessColumns, storedRole } from './can-decide.ts';

export interface Membership extends Access {
  organizationId: string;
  /** The organization's name. */
  name: string;
}

/** Every organization of a person, oldest first: the only look-up that starts from a person. */
export function membershipsOf(db: Queryable, userId: string): Promise<Membership[]> {
  return db.query<Membership>(sql`
    select m.organization_id as "organizationId", o.name, ${accessColumns('m')}
    from members m join organizations o on o.organization_id = m.organization_id
    where m.user_id = ${userId} order by m.organization_id`);
}

export async function organizationIdsOf(db: Queryable, userId: string): Promise<string[]> {
  return (await membershipsOf(db, userId)).map(({ organizationId }) => organizationId);
}

/** What a person can do in an organization; undefined if they are not a member. */
export async function accessIn(
  db: Queryable,
  organizationId: string,
  userId: string,
  lock: Sql = empty,
): Promise<Access | undefined> {
  const [row] = await db.query<Access>(sql`
    select ${accessColumns('m')} from members m
    where m.organization_id = ${organizationId} and m.user_id = ${userId} ${lock}`);
  return row;
}

/**
 * Adds a person as a member: `already` if they are one, `gone` if they were deleted. Locks the person's row against deletion: a person who
 * leaves their last organization is deleted.
 */
export async function addMember(
  tx: Tx,
  organizationId: string,
  userId: string,
  access: Access,
  now: Date,
): Promise<'added' | 'already' | 'gone'> {
  const [held] = await tx.query(sql`select 1 from users where id = ${userId} for share`);
  if (!held) return 'gone';
  const added = await tx.execute(sql`
    insert into members (organization_id, user_id, role, decides_agents, decides_environments, joined_at)
    values (${organizationId}, ${userId}, ${storedRole(access)}, ${access.decidesAgents}, ${access.decidesEnvironments}, ${now}) on conflict (organization_id, user_id) do nothing`);
  return added > 0 ? 'added' : 'already';
}

/** Serializes changes of owners: two owners who remove each other would leave none. */
export async function lockOrganization(tx: Tx, organizationId: string): Promise<void> {
  await tx.query(sql`select 1 from organizations where organization_id = ${organizationId} for no key update`);
}

export async function countOwners(tx: Tx, organizationId: string): Promise<number> {
  const [row] = await tx.query<{ owners: number }>(sql`
    select count(*)::integer as owners from members where organization_id = ${organizationId} and role = 'owner'`);
  return row!.owners;
}

export async function hasMembers(db: Queryable, organizationId: string): Promise<boolean> {
  return (await db.query(sql`select 1 from members where organization_id = ${organizationId} limit 1`)).length > 0;
}
