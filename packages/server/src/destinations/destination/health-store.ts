// What the sending side changes about a destination: its health, and what it disables, warns about and confirms, each with its event
// record. As deliveries/destinations/subscription-changes.ts for webhook subscriptions.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { HealthStore, HealthUpdate } from '../../deliveries/destinations/destination-health.ts';
import { recordEvent, systemSource } from '../../events/record.ts';
import { formatId } from '../../lib/ids.ts';
import { type DestinationAssignment, sameDestination } from './assignments.ts';

type Changes = Record<string, [before: unknown, after: unknown]>;

export const destinationHealth: HealthStore<DestinationAssignment> = {
  disable(db, assignment, reason, now) {
    const update = sql`
      update destinations set status = 'disabled', disabled_reason = ${reason}, node_id = null, epoch = epoch + 1,
        updated_at = ${now}
      where ${sameDestination(assignment)} and epoch = ${assignment.epoch} and status = 'enabled'`;
    const changes: Changes = { status: ['enabled', 'disabled'], disabledReason: [null, reason] };
    return updateAndRecord(db, assignment, now, 'disabled', changes, update);
  },

  markDegraded(db, assignment, failingSince, now) {
    const update = sql`
      update destinations set degraded = true
      where ${sameDestination(assignment)} and epoch = ${assignment.epoch} and status = 'enabled' and not degraded`;
    const changes: Changes = { failingSince: [null, failingSince.toISOString()] };
    return updateAndRecord(db, assignment, now, 'degraded', changes, update);
  },

  confirmSecret(db, assignment, version, now) {
    const update = sql`
      update destinations set confirmed_secret_version = ${version}
      where ${sameDestination(assignment)} and secret_version >= ${version}
        and coalesce(confirmed_secret_version, 0) < ${version}`;
    const changes: Changes = { confirmedSecretVersion: [assignment.confirmedSecretVersion, version] };
    return updateAndRecord(db, assignment, now, 'secret_confirmed', changes, update);
  },

  write(updates) {
    const of = <T>(value: (update: HealthUpdate<DestinationAssignment>) => T): T[] => updates.map(value);
    const organizations = [...new Set(of(({ assignment }) => assignment.organizationId))];
    // The order keeps two nodes that lock the same rows from deadlocking.
    return sql`
      update destinations d set last_success_at = coalesce(x.success, d.last_success_at),
        last_failure_at = x.last_failure_at, failing_since = x.failing_since, failures = x.failures,
        failing_lane = x.failing_lane, last_error = x.last_error, last_status = x.last_status, probe_at = x.probe_at,
        degraded = d.degraded and x.failing_since is not null
      from (
        select l.organization_id, l.destination_id, s.*
        from unnest(${of(({ assignment }) => assignment.organizationId)}::uuid[],
          ${of(({ assignment }) => assignment.destinationId)}::uuid[], ${of(({ assignment }) => assignment.epoch)}::int[],
          ${of(({ success }) => success)}::timestamptz[], ${of(({ health }) => health.lastFailureAt)}::timestamptz[],
          ${of(({ health }) => health.failingSince)}::timestamptz[], ${of(({ health }) => health.failures)}::int[],
          ${of(({ health }) => health.failingLane)}::text[], ${of(({ health }) => health.lastError)}::text[],
          ${of(({ health }) => health.lastStatus)}::int[], ${of(({ health }) => health.probeAt)}::timestamptz[])
          as s(org, id, at_epoch, success, last_failure_at, failing_since, failures, failing_lane, last_error, last_status,
            probe_at)
        join destinations l on l.organization_id = s.org and l.destination_id = s.id and l.epoch = s.at_epoch
        where l.organization_id = any(${organizations}::uuid[])
        order by l.organization_id, l.destination_id for no key update of l) x
      where d.organization_id = any(${organizations}::uuid[]) and d.organization_id = x.organization_id
        and d.destination_id = x.destination_id`;
  },

  retryNow: (assignment, now) => [dueNow(assignment, now)],
};

/** Makes waiting deliveries due now, or at the time the receiver asked for if that is later. */
export function dueNow(destination: Pick<DestinationAssignment, 'organizationId' | 'destinationId'>, now: Date): Sql {
  return sql`
    update destination_deliveries set due_at = greatest(${now}::timestamptz, not_before)
    where ${sameDestination(destination)} and status = 'pending' and due_at > ${now}`;
}

/** Records an event if the update changed the row; false if it did not. */
async function updateAndRecord(
  db: Db,
  { organizationId, destinationId, environment }: DestinationAssignment,
  now: Date,
  what: 'degraded' | 'disabled' | 'secret_confirmed',
  changes: Changes,
  update: Sql,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    if ((await tx.execute(update)) === 0) return false;
    await tx.query(
      recordEvent(systemSource(organizationId), now, {
        type: `destination.${what}`,
        resource: { type: 'destination', id: formatId('dst', destinationId) },
        environment,
        changes,
      }),
    );
    return true;
  });
}
