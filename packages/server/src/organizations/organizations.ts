// Organizations: the unit of tenancy. A fresh installation has one, created at its first start.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import { firstHash } from '../events/sequencer.ts';
import { formatId, newUuid } from '../lib/ids.ts';

/** The environments that every organization starts with. */
const firstEnvironments = ['production', 'staging'];

export interface Organization {
  organizationId: string;
  name: string;
}

/** Creates an organization with its environments and the head of its event log. */
export async function createOrganization(tx: Tx, name: string, now: Date): Promise<Organization> {
  const organizationId = newUuid();
  await Promise.all([
    tx.query(sql`
      insert into organizations (organization_id, name, created_at) values (${organizationId}, ${name}, ${now})`),
    tx.query(sql`
      insert into event_heads (organization_id, sequence, hash, anchor_sequence, anchor_hash)
      values (${organizationId}, 0, ${firstHash}, 0, ${firstHash})`),
    ...firstEnvironments.map((environment) =>
      tx.query(sql`
        insert into environments (organization_id, name, environment_id, created_at)
        values (${organizationId}, ${environment}, ${newUuid()}, ${now})`),
    ),
  ]);
  return { organizationId, name };
}

/** Creates one, and records who did. */
export async function foundOrganization(
  tx: Tx,
  by: Omit<EventSource, 'organizationId'>,
  now: Date,
  name: string,
): Promise<Organization> {
  const created = await createOrganization(tx, name, now);
  const { organizationId } = created;
  await tx.query(
    recordEvent({ ...by, organizationId }, now, {
      type: 'organization.created',
      resource: { type: 'organization', id: formatId('org', organizationId) },
      changes: { name: [null, name] },
    }),
  );
  return created;
}

/** Every organization of the installation, oldest first: for the operator, never for a request. */
export function allOrganizations(db: Db): Promise<Organization[]> {
  return db.query<Organization>(
    sql`select organization_id as "organizationId", name from organizations order by organization_id`,
  );
}

/** Returns the first organization, and creates it if there is none. Two nodes that start at once create one. */
export async function ensureFirstOrganization(db: Db, now: Date): Promise<Organization> {
  return db.transaction(async (tx) => {
    // Serializes starting nodes. Nothing else takes this lock, and it lasts for a few inserts.
    await tx.query(sql`lock table organizations in share row exclusive mode`);
    const [first] = await tx.query<Organization>(
      sql`select organization_id as "organizationId", name from organizations order by organization_id limit 1`,
    );
    return first ?? createOrganization(tx, 'My organization', now);
  });
}
