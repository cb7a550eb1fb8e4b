// Which node sends to a destination. All enabled destinations of an organization are assigned to one node, which reads the log once for
// all of them. A claim stores the node's id in the rows and raises their epochs; it is valid as long as the node's lease in `nodes`. Every
// change of a destination raises its epoch too, and unassigns it.
import { type Destination, destinationTypes } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Found } from '../../db/shards.ts';
import type { Watched } from '../../deliveries/destinations/destination-health.ts';
import { signingSecret } from '../../deliveries/destinations/signing.ts';
import { openSecret } from '../../deliveries/destinations/signing-secret.ts';
import type { Target } from '../../deliveries/destinations/target.ts';
import { formatId } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import type { Vault } from '../../vault/vault.ts';
import { openHeaders } from './headers.ts';

/** A destination as the node that it is assigned to knows it. */
export interface DestinationAssignment extends Target, Watched {
  destinationId: string;
  type: Destination['type'];
  /** Types and groups of types (events/filter.ts). */
  eventTypes: readonly string[];
  environment: string | null;
  /** `agt_…`; undefined: all records. */
  agentIds: ReadonlySet<string> | undefined;
  headers: Readonly<Record<string, string>>;
  /** The record up to which the log was read for it. */
  readSequence: number;
  /** Whether the record of its creation was read. */
  isStarted: boolean;
}

export interface ClaimableDestination {
  organizationId: string;
  destinationId: string;
  epoch: number;
  isAssigned: boolean;
}

interface Row {
  organizationId: string;
  destinationId: string;
  type: Destination['type'];
  eventTypes: string[];
  environment: string | null;
  agentIds: string[] | null;
  readSequence: number;
  isStarted: boolean;
  epoch: number;
  url: string;
  sealedHeaders: Buffer | null;
  sealedSecret: Buffer;
  secretVersion: number;
  previousSealedSecret: Buffer | null;
  previousSecretExpiresAt: Date | null;
  confirmedSecretVersion: number | null;
  failingSince: Date | null;
  lastFailureAt: Date | null;
  failures: number;
  failingLane: string | null;
  lastError: string | null;
  lastStatus: number | null;
  probeAt: Date | null;
  isDegraded: boolean;
}

/**
 * Enabled destinations that are assigned to this node, to no node, or to a node whose lease has expired. None if this node's own lease has
 * expired, because other nodes may have claimed its destinations.
 */
export function findClaimable(
  { shards }: Pick<Platform, 'shards'>,
  nodeId: string,
): Promise<Found<ClaimableDestination>> {
  return shards.query<ClaimableDestination>(
    'looking for destinations',
    (within) => sql`
    with alive as materialized (select h.node_id from nodes h where h.lease_expires_at > now())
    select d.organization_id as "organizationId", d.destination_id as "destinationId", d.epoch,
      d.node_id is not distinct from ${nodeId}::uuid as "isAssigned"
    from destinations d
    where d.status = 'enabled' and d.type = any(${[...destinationTypes]}::text[])
      and (d.node_id is null or d.node_id = ${nodeId} or d.node_id not in (select a.node_id from alive a))
      and ${nodeId}::uuid in (select a.node_id from alive a) ${within(sql`d.organization_id`)}`,
  );
}

/**
 * Claims destinations of one organization in one transaction, and reads those that are assigned to this node already. Omits those that
 * have changed since they were found, and those whose secrets cannot be opened.
 */
export async function claimDestinations(
  { db, vault, log }: Pick<Platform, 'db' | 'vault' | 'log'>,
  nodeId: string,
  candidates: readonly ClaimableDestination[],
): Promise<DestinationAssignment[]> {
  // The order keeps two nodes that claim the same rows from deadlocking.
  const sorted = candidates.toSorted((a, b) => (a.destinationId < b.destinationId ? -1 : 1));
  const groups = await db.batch<Row>(
    sorted.map(({ organizationId, destinationId, epoch, isAssigned }) =>
      isAssigned
        ? sql`
            select ${columns()} from destinations d
            where d.organization_id = ${organizationId} and d.destination_id = ${destinationId} and d.node_id = ${nodeId}
              and d.status = 'enabled'`
        : sql`
            update destinations as d set node_id = ${nodeId}, epoch = d.epoch + 1
            where d.organization_id = ${organizationId} and d.destination_id = ${destinationId} and d.epoch = ${epoch}
              and d.status = 'enabled'
            returning ${columns()}`,
    ),
  );
  return groups.flat().flatMap((row) => {
    try {
      return assignmentOf(vault, row);
    } catch (error) {
      // This affects only this destination; the others continue.
      const destinationId = formatId('dst', row.destinationId);
      log.error({ err: error, destinationId }, 'the destination is blocked; nothing is sent');
      return [];
    }
  });
}

/** Whichever node it is assigned to; undefined if it does not exist. */
export async function readAssignment(
  { db, vault }: Pick<Platform, 'db' | 'vault'>,
  organizationId: string,
  destinationId: string,
): Promise<DestinationAssignment | undefined> {
  const [row] = await db.query<Row>(sql`
    select ${columns()} from destinations d
    where d.organization_id = ${organizationId} and d.destination_id = ${destinationId}`);
  return row && assignmentOf(vault, row);
}

/** Unassigns what is assigned to this node of an organization, so that another node need not wait for its lease to expire. */
export async function release(db: Db, nodeId: string, organizationId: string): Promise<void> {
  await db.execute(sql`
    update destinations set node_id = null where organization_id = ${organizationId} and node_id = ${nodeId}`);
}

/** The condition that a row is this destination, in whatever state. */
export function sameDestination({
  organizationId,
  destinationId,
}: Pick<DestinationAssignment, 'organizationId' | 'destinationId'>): Sql {
  return sql`organization_id = ${organizationId} and destination_id = ${destinationId}`;
}

function columns(): Sql {
  return sql`d.organization_id as "organizationId", d.destination_id as "destinationId", d.type, d.event_types as "eventTypes",
    d.environment, d.agent_ids as "agentIds", d.read_sequence as "readSequence", d.started as "isStarted", d.epoch, d.url,
    d.sealed_headers as "sealedHeaders", d.sealed_secret as "sealedSecret", d.secret_version as "secretVersion",
    d.previous_sealed_secret as "previousSealedSecret", d.previous_secret_expires_at as "previousSecretExpiresAt",
    d.confirmed_secret_version as "confirmedSecretVersion", d.failing_since as "failingSince",
    d.last_failure_at as "lastFailureAt", d.failures, d.failing_lane as "failingLane", d.last_error as "lastError",
    d.last_status as "lastStatus", d.probe_at as "probeAt", d.degraded as "isDegraded"`;
}

function assignmentOf(vault: Vault, row: Row): DestinationAssignment {
  const { sealedHeaders, sealedSecret, secretVersion, previousSealedSecret, previousSecretExpiresAt, ...others } = row;
  const { failingSince, lastFailureAt, failures, failingLane, lastError, lastStatus, probeAt, ...rest } = others;
  const open = (version: number, sealed: Buffer) =>
    signingSecret(version, openSecret(vault, { ...row, secretVersion: version }, sealed));
  return {
    ...rest,
    agentIds: row.agentIds === null ? undefined : new Set(row.agentIds.map((id) => formatId('agt', id))),
    headers: openHeaders(vault, row, sealedHeaders),
    secret: open(secretVersion, sealedSecret),
    previous:
      previousSealedSecret && previousSecretExpiresAt
        ? { secret: open(secretVersion - 1, previousSealedSecret), expiresAt: previousSecretExpiresAt }
        : undefined,
    health: { failingSince, lastFailureAt, failures, failingLane, lastError, lastStatus, probeAt },
  };
}
