// Which node sends for a subscription. A claim stores the node's id in the row and raises its epoch; it is valid as long as the
// node's lease in `nodes`. What a node knows about a subscription is valid for one epoch: every change, and every claim by
// another node, raises it.
import type { ChunkType } from '@signalbox/contract';
import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Found } from '../../db/shards.ts';
import { formatId } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import type { Vault } from '../../vault/vault.ts';
import type { Watched } from './destination-health.ts';
import { signingSecret } from './signing.ts';
import { openSecret } from './signing-secret.ts';
import type { Target } from './target.ts';

/** A subscription as the node it is assigned to knows it. */
export interface Assignment extends Target, Watched {
  environment: string;
  webhookSubscriptionId: string;
  chunkTypes: readonly ChunkType[];
}

/** A subscription that is assigned to this node, or that the node may claim. */
export interface ClaimableSubscription {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  epoch: number;
  isAssigned: boolean;
}

interface Row {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  epoch: number;
  url: string;
  chunkTypes: ChunkType[];
  sealedSecret: Buffer;
  secretVersion: number;
  previousSealedSecret: Buffer | null;
  previousSecretExpiresAt: Date | null;
  confirmedSecretVersion: number | null;
  failingSince: Date | null;
  lastFailureAt: Date | null;
  failures: number;
  failingSessionId: string | null;
  lastError: string | null;
  lastStatus: number | null;
  probeAt: Date | null;
  isDegraded: boolean;
}

/**
 * Enabled subscriptions that are assigned to this node, to no node, or to a node whose lease has expired. None if this node's own
 * lease has expired, because other nodes may have claimed its subscriptions.
 */
export function findClaimable(
  { shards }: Pick<Platform, 'shards'>,
  nodeId: string,
): Promise<Found<ClaimableSubscription>> {
  return shards.query<ClaimableSubscription>(
    'looking for subscriptions',
    (within) => sql`
    with alive as materialized (select h.node_id from nodes h where h.lease_expires_at > now())
    select w.organization_id as "organizationId", w.environment, w.webhook_subscription_id as "webhookSubscriptionId",
      w.epoch, w.node_id is not distinct from ${nodeId}::uuid as "isAssigned"
    from webhook_subscriptions w
    where w.status = 'enabled'
      and (w.node_id is null or w.node_id = ${nodeId} or w.node_id not in (select a.node_id from alive a))
      and ${nodeId}::uuid in (select a.node_id from alive a) ${within(sql`w.organization_id`)}`,
  );
}

/**
 * Whether any enabled subscription, or row of `table`, is assigned to none of these nodes, which are sorted. Every change unassigns
 * it, so a changed one is found too. The ids of other nodes are in the ranges between these, so an index finds them without
 * reading what is assigned to these nodes.
 */
export async function isAnyUnassigned(
  { shards }: Pick<Platform, 'shards'>,
  nodes: readonly string[],
  table: Sql = raw('webhook_subscriptions'),
): Promise<boolean> {
  const holders = [
    sql`w.node_id is null`,
    ...nodes.map((node, n) => (n === 0 ? sql`w.node_id < ${node}` : between(nodes[n - 1]!, node))),
    ...nodes.slice(-1).map((last) => sql`w.node_id > ${last}`),
  ];
  const { rows } = await shards.query('looking for subscriptions to claim', (within) => {
    const of = within(sql`w.organization_id`);
    const looks = holders.map(
      (holder) => sql`(select 1 from ${table} w where w.status = 'enabled' and ${holder} ${of} limit 1)`,
    );
    return join(looks, ' union all ');
  });
  return rows.length > 0;
}

function between(a: string, b: string): Sql {
  return sql`w.node_id > ${a} and w.node_id < ${b}`;
}

/**
 * Claims subscriptions of one organization in one transaction, and reads those that are assigned to this node already. Omits those
 * that have changed since they were found, and those whose secret cannot be opened.
 */
export async function claimSubscriptions(
  { db, vault, log }: Pick<Platform, 'db' | 'vault' | 'log'>,
  nodeId: string,
  candidates: readonly ClaimableSubscription[],
): Promise<Assignment[]> {
  // The order keeps two nodes that claim the same rows from deadlocking.
  const sorted = candidates.toSorted((a, b) => (a.environment < b.environment ? -1 : 1));
  const groups = await db.batch<Row>(
    sorted.map(({ organizationId, environment, webhookSubscriptionId, epoch, isAssigned }) =>
      isAssigned
        ? sql`
            select ${columns()} from webhook_subscriptions w
            where w.organization_id = ${organizationId} and w.environment = ${environment}
              and w.webhook_subscription_id = ${webhookSubscriptionId} and w.node_id = ${nodeId}
              and w.status = 'enabled'`
        : sql`
            update webhook_subscriptions as w set node_id = ${nodeId}, epoch = w.epoch + 1
            where w.organization_id = ${organizationId} and w.environment = ${environment}
              and w.webhook_subscription_id = ${webhookSubscriptionId} and w.epoch = ${epoch} and w.status = 'enabled'
            returning ${columns()}`,
    ),
  );
  return groups.flat().flatMap((row) => {
    try {
      return assignmentOf(vault, row);
    } catch (error) {
      // This affects only this subscription; the others continue.
      log.error(
        { err: error, webhookSubscriptionId: formatId('whs', row.webhookSubscriptionId) },
        'the subscription is blocked; nothing is sent',
      );
      return [];
    }
  });
}

/** The subscription of an environment, whichever node it is assigned to; undefined if there is none. */
export async function readAssignment(
  { db, vault }: Pick<Platform, 'db' | 'vault'>,
  organizationId: string,
  environment: string,
): Promise<Assignment | undefined> {
  const [row] = await db.query<Row>(sql`
    select ${columns()} from webhook_subscriptions w
    where w.organization_id = ${organizationId} and w.environment = ${environment}`);
  return row && assignmentOf(vault, row);
}

/** Unassigns all subscriptions of this node, so that other nodes need not wait for its lease to expire. */
export async function releaseAll(db: Db, nodeId: string, organizationIds: readonly string[]): Promise<void> {
  await db.query(sql`
    update webhook_subscriptions set node_id = null
    where organization_id = any(${[...organizationIds]}::uuid[]) and node_id = ${nodeId}`);
}

/** Unassigns a subscription that is another node's share. None of its deliveries may be in flight. */
export async function handOver(db: Db, nodeId: string, candidate: ClaimableSubscription): Promise<void> {
  const { organizationId, environment, webhookSubscriptionId } = candidate;
  await db.execute(sql`
    update webhook_subscriptions set node_id = null
    where organization_id = ${organizationId} and environment = ${environment}
      and webhook_subscription_id = ${webhookSubscriptionId} and node_id = ${nodeId}`);
}

/** The condition that a row is this subscription, in whatever state. */
export function sameSubscription({ organizationId, environment, webhookSubscriptionId }: Assignment): Sql {
  return sql`organization_id = ${organizationId} and environment = ${environment}
    and webhook_subscription_id = ${webhookSubscriptionId}`;
}

function columns(): Sql {
  return sql`w.organization_id as "organizationId", w.environment, w.webhook_subscription_id as "webhookSubscriptionId",
    w.epoch, w.url, w.chunk_types as "chunkTypes", w.sealed_secret as "sealedSecret", w.secret_version as "secretVersion",
    w.previous_sealed_secret as "previousSealedSecret", w.previous_secret_expires_at as "previousSecretExpiresAt",
    w.confirmed_secret_version as "confirmedSecretVersion", w.failing_since as "failingSince",
    w.last_failure_at as "lastFailureAt", w.failures, w.failing_session_id as "failingSessionId",
    w.last_error as "lastError", w.last_status as "lastStatus",
    w.probe_at as "probeAt", w.degraded as "isDegraded"`;
}

function assignmentOf(vault: Vault, row: Row): Assignment {
  const { sealedSecret, secretVersion, previousSealedSecret, previousSecretExpiresAt, ...others } = row;
  const { failingSince, lastFailureAt, failures, failingSessionId, lastError, lastStatus, probeAt, ...rest } = others;
  const open = (version: number, sealed: Buffer) =>
    signingSecret(version, openSecret(vault, { ...row, secretVersion: version }, sealed));
  return {
    ...rest,
    secret: open(secretVersion, sealedSecret),
    previous:
      previousSealedSecret && previousSecretExpiresAt
        ? { secret: open(secretVersion - 1, previousSealedSecret), expiresAt: previousSecretExpiresAt }
        : undefined,
    health: { failingSince, lastFailureAt, failures, failingLane: failingSessionId, lastError, lastStatus, probeAt },
  };
}
