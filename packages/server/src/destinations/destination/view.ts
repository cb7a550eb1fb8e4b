// A destination's row, and how the API shows it.
import type { Destination } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../../db/db.ts';
import { blockOf } from '../../deliveries/destinations/blocked.ts';
import { openSecret } from '../../deliveries/destinations/signing-secret.ts';
import type { EventDraft } from '../../events/record.ts';
import { notFound } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { formatId } from '../../lib/ids.ts';
import { openHeaders } from './headers.ts';

export interface DestinationRow {
  organizationId: string;
  destinationId: string;
  name: string;
  type: Destination['type'];
  eventTypes: string[];
  environment: string | null;
  agentIds: string[] | null;
  status: Destination['status'];
  disabledReason: string | null;
  url: string;
  headerNames: string[];
  sealedHeaders: Buffer | null;
  sealedSecret: Buffer;
  secretVersion: number;
  previousSealedSecret: Buffer | null;
  previousSecretExpiresAt: Date | null;
  confirmedSecretVersion: number | null;
  lostFrom: number | null;
  lostTo: number | null;
  failingSince: Date | null;
  failures: number;
  lastError: string | null;
  lastStatus: number | null;
  probeAt: Date | null;
  isDegraded: boolean;
  lastSuccessAt: Date | null;
  lastFailureAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  hasDeliveryNode: boolean;
}

/** The columns of `destinations d`. */
export function columns(): Sql {
  return sql`d.organization_id as "organizationId", d.destination_id as "destinationId", d.name, d.type,
    d.event_types as "eventTypes", d.environment, d.agent_ids as "agentIds", d.status, d.disabled_reason as "disabledReason",
    d.url, d.header_names as "headerNames", d.sealed_headers as "sealedHeaders", d.sealed_secret as "sealedSecret",
    d.secret_version as "secretVersion", d.previous_sealed_secret as "previousSealedSecret",
    d.previous_secret_expires_at as "previousSecretExpiresAt", d.confirmed_secret_version as "confirmedSecretVersion",
    d.lost_from as "lostFrom", d.lost_to as "lostTo", d.failing_since as "failingSince", d.failures,
    d.last_error as "lastError", d.last_status as "lastStatus", d.probe_at as "probeAt", d.degraded as "isDegraded",
    d.last_success_at as "lastSuccessAt", d.last_failure_at as "lastFailureAt", d.created_at as "createdAt",
    d.updated_at as "updatedAt",
    exists (select 1 from nodes n where n.sends_destinations and n.lease_expires_at > now()) as "hasDeliveryNode"`;
}

/** 404 if it does not exist. */
export async function readDestination(db: Queryable, ctx: Context, destinationId: string): Promise<DestinationRow> {
  const [row] = await db.query<DestinationRow>(sql`
    select ${columns()} from destinations d
    where d.organization_id = ${ctx.organizationId} and d.destination_id = ${destinationId}`);
  if (!row) throw notFound('destination');
  return row;
}

/** As `readDestination`, for a change. */
export async function lockDestination(tx: Tx, ctx: Context, destinationId: string): Promise<DestinationRow> {
  await tx.query(sql`
    select 1 from destinations where organization_id = ${ctx.organizationId} and destination_id = ${destinationId}
    for update`);
  return readDestination(tx, ctx, destinationId);
}

export function viewDestination(ctx: Context, row: DestinationRow): Destination {
  const now = ctx.clock.now();
  const { previousSecretExpiresAt: expiresAt, failingSince } = row;
  const block = blockOf(ctx, row, () => openAll(ctx, row));
  return {
    destinationId: formatId('dst', row.destinationId),
    name: row.name,
    type: row.type,
    eventTypes: row.eventTypes,
    environment: row.environment,
    agentIds: row.agentIds?.map((id) => formatId('agt', id)) ?? null,
    url: row.url,
    headerNames: row.headerNames,
    status: row.status,
    disabledReason: row.disabledReason,
    secretVersion: row.secretVersion,
    previousSecretExpiresAt: expiresAt && expiresAt > now ? expiresAt.toISOString() : null,
    confirmedSecretVersion: row.confirmedSecretVersion,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    lastSuccessAt: row.lastSuccessAt?.toISOString() ?? null,
    lastFailureAt: row.lastFailureAt?.toISOString() ?? null,
    health: {
      state: block.blockedBy ? 'blocked' : row.isDegraded ? 'degraded' : failingSince ? 'failing' : 'healthy',
      ...block,
      failingSince: failingSince?.toISOString() ?? null,
      consecutiveFailures: row.failures,
      lastError: row.lastError,
      lastStatus: row.lastStatus,
      nextProbeAt: row.probeAt?.toISOString() ?? null,
      lostEvents: row.lostFrom === null ? null : { from: row.lostFrom, to: row.lostTo! },
    },
  };
}

/** Throws `CannotOpen`. */
function openAll({ vault }: Pick<Context, 'vault'>, row: DestinationRow): void {
  openHeaders(vault, row, row.sealedHeaders);
  openSecret(vault, row, row.sealedSecret);
  if (row.previousSealedSecret) {
    openSecret(vault, { ...row, secretVersion: row.secretVersion - 1 }, row.previousSealedSecret);
  }
}

type What = 'created' | 'updated' | 'deleted' | 'enabled' | 'secret_rotated' | 'recovered';

/** The event about a change of it. */
export function destinationEvent(
  { destinationId, environment }: Pick<DestinationRow, 'destinationId' | 'environment'>,
  what: What,
  changes: EventDraft['changes'] = null,
): EventDraft {
  return {
    type: `destination.${what}`,
    resource: { type: 'destination', id: formatId('dst', destinationId) },
    environment,
    changes,
  };
}
