// Webhook subscriptions: the destination that an environment's chunks are sent to, at most one for each environment.
//
// A subscription is `enabled`, `paused` by a caller, or `disabled` by the service (`gone`: the destination responded with 410;
// `failing`: it has failed for 5 days). While it is not enabled, chunks wait in the journal.
// Every change raises its `epoch` and unassigns it from its node, which claims and reads it again before it continues.
//
// Creating and deleting a subscription touch no session, so they take the same time however many sessions the environment has.
// Locks are taken in one order everywhere: subscription, sessions by id, deliveries.
import { randomBytes } from 'node:crypto';
import {
  type ChunkType,
  defaultChunkTypes,
  defaultGracePeriodSeconds,
  type Input,
  type Result,
  signingSecretPrefix,
  testReceiverUrl,
  type WebhookSubscription,
} from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import {
  type BlockableSubscription,
  blockOf,
  hasDeliveryNode,
  openSecrets,
} from '../deliveries/destinations/blocked.ts';
import { sealSecret } from '../deliveries/destinations/signing-secret.ts';
import { retryNow } from '../deliveries/destinations/subscription-changes.ts';
import { allowedUrlsHint, UrlNotAllowed } from '../egress/errors.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { changesBetween, type EventDraft, recordEvent } from '../events/record.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';

interface Row extends BlockableSubscription {
  chunkTypes: ChunkType[];
  status: WebhookSubscription['status'];
  disabledReason: string | null;
  previousSecretExpiresAt: Date | null;
  confirmedSecretVersion: number | null;
  createdAt: Date;
  updatedAt: Date;
  lastSuccessAt: Date | null;
  lastFailureAt: Date | null;
  failingSince: Date | null;
  failures: number;
  lastStatus: number | null;
  probeAt: Date | null;
  failingSessionId: string | null;
  isDegraded: boolean;
}

const SECRET_BYTES = 32;
/** The health columns of a destination without failures. */
const healthyState = {
  failingSince: null,
  failures: 0,
  lastError: null,
  lastStatus: null,
  probeAt: null,
  failingSessionId: null,
  isDegraded: false,
};

/** The subscriptions of all environments, newest first. */
export async function listWebhookSubscriptions(
  ctx: Context,
  input: Input<'listWebhookSubscriptions'>,
): Promise<Result<'listWebhookSubscriptions'>> {
  const request = pageRequest(`webhook_subscriptions:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select ${columns()} from webhook_subscriptions w where organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and webhook_subscription_id < ${request.after}`}
      ${input.environment === undefined ? empty : sql`and environment = ${input.environment}`}
    order by webhook_subscription_id desc limit ${request.limit + 1}`);
  const now = ctx.clock.now();
  return pageOf(
    request,
    rows,
    (row) => row.webhookSubscriptionId,
    (row) => viewSubscription(ctx, row, now),
  );
}

/** 422 `url_not_allowed`, 404 for an unknown environment, 409 `subscription_exists` if it has one. */
export async function createWebhookSubscription(
  ctx: Context,
  input: Input<'createWebhookSubscription'>,
): Promise<Result<'createWebhookSubscription'>> {
  const { organizationId } = ctx;
  checkUrl(ctx, input.url);
  return inTransaction(ctx, async (tx, ctx) => {
    await lockEnvironment(tx, organizationId, input.environment);
    const now = ctx.clock.now();
    const identity = {
      organizationId,
      environment: input.environment,
      webhookSubscriptionId: newUuid(),
      secretVersion: 1,
    };
    const signingSecret = newSigningSecret();
    const sealed = sealSecret(ctx.vault, identity, signingSecret);
    const created = await tx.execute(sql`
      insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
        sealed_secret, secret_version, created_at, updated_at)
      values (${organizationId}, ${identity.environment}, ${identity.webhookSubscriptionId}, ${input.url},
        ${input.chunkTypes ?? [...defaultChunkTypes]}, 'enabled', ${sealed}, ${identity.secretVersion}, ${now}, ${now})
      on conflict do nothing`);
    if (created === 0) {
      throw new ApiError(
        'subscription_exists',
        `environment: "${input.environment}" already has a subscription. Change or delete it.`,
      );
    }
    const row = await lockSubscription(tx, ctx, input.environment);
    await tx.query(
      recordEvent(ctx, now, draft(row, 'created', { url: [null, row.url], chunkTypes: [null, row.chunkTypes] })),
    );
    announce(tx, ctx);
    return { webhookSubscription: viewSubscription(ctx, row, now), signingSecret };
  });
}

/** 404 if the environment has no subscription. */
export async function getWebhookSubscription(
  ctx: Context,
  input: Input<'getWebhookSubscription'>,
): Promise<Result<'getWebhookSubscription'>> {
  const [row] = await ctx.db.query<Row>(sql`
    select ${columns()} from webhook_subscriptions w
    where organization_id = ${ctx.organizationId} and environment = ${input.env}`);
  if (!row) throw notFound('webhook subscription');
  return { webhookSubscription: viewSubscription(ctx, row, ctx.clock.now()) };
}

/** Changes url, chunk types or status, which apply from the next delivery on. 404 if the environment has no subscription. */
export async function updateWebhookSubscription(
  ctx: Context,
  input: Input<'updateWebhookSubscription'>,
): Promise<Result<'updateWebhookSubscription'>> {
  if (input.url !== undefined) checkUrl(ctx, input.url);
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockSubscription(tx, ctx, input.env);
    const now = ctx.clock.now();
    const after: Row = {
      ...before,
      url: input.url ?? before.url,
      chunkTypes: input.chunkTypes ?? before.chunkTypes,
      status: input.status ?? before.status,
      disabledReason: input.status === undefined ? before.disabledReason : null,
      updatedAt: now,
    };
    const isEnabled = after.status === 'enabled' && before.status !== 'enabled';
    const changed = changesBetween(before, after, ['url', 'chunkTypes', ...(isEnabled ? [] : (['status'] as const))]);
    if (!changed && !isEnabled) return { webhookSubscription: viewSubscription(ctx, before, now) };
    // A new url or enabling means that the caller expects the destination to work, so former failures don't count.
    const isFresh = isEnabled || after.url !== before.url;
    if (isFresh) Object.assign(after, healthyState);
    await tx.query(sql`
      update webhook_subscriptions set url = ${after.url}, chunk_types = ${after.chunkTypes}, status = ${after.status},
        disabled_reason = ${after.disabledReason}, node_id = null, epoch = epoch + 1, updated_at = ${now}
        ${
          isFresh
            ? sql`, failing_since = null, failures = 0, failing_session_id = null, last_error = null, last_status = null,
          probe_at = null, degraded = false`
            : empty
        }
      where organization_id = ${ctx.organizationId} and environment = ${after.environment}`);
    if (isFresh) {
      const { webhookSubscriptionId } = after;
      const statements = retryNow({ organizationId: ctx.organizationId, webhookSubscriptionId }, now);
      await Promise.all(statements.map((statement) => tx.query(statement)));
    }
    if (changed) await tx.query(recordEvent(ctx, now, draft(after, 'updated', changed)));
    if (isEnabled) {
      await tx.query(recordEvent(ctx, now, draft(after, 'enabled', changesBetween(before, after, ['status']))));
    }
    announce(tx, ctx);
    return { webhookSubscription: viewSubscription(ctx, after, now) };
  });
}

/**
 * Undelivered chunks are never sent; a subscription that is created later starts with new chunks. Sessions and deliveries that refer
 * to the subscription stay as they are: nothing is sent for a deleted subscription, and upkeep clears them (retention.ts).
 */
export async function deleteWebhookSubscription(
  ctx: Context,
  input: Input<'deleteWebhookSubscription'>,
): Promise<Result<'deleteWebhookSubscription'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSubscription(tx, ctx, input.env);
    const now = ctx.clock.now();
    await Promise.all([
      tx.query(sql`
        delete from webhook_recoveries where organization_id = ${organizationId}
          and webhook_subscription_id = ${row.webhookSubscriptionId}`),
      tx.query(sql`
        delete from webhook_subscriptions where organization_id = ${organizationId} and environment = ${row.environment}`),
      tx.query(recordEvent(ctx, now, draft(row, 'deleted'))),
    ]);
    announce(tx, ctx);
    return { webhookSubscriptionId: formatId('whs', row.webhookSubscriptionId), deleted: true };
  });
}

/** Creates a new signing secret. The previous one also signs until the end of the grace period; any older one stops signing. */
export async function rotateWebhookSecret(
  ctx: Context,
  input: Input<'rotateWebhookSecret'>,
): Promise<Result<'rotateWebhookSecret'>> {
  const { organizationId } = ctx;
  const { gracePeriodSeconds = defaultGracePeriodSeconds } = input;
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockSubscription(tx, ctx, input.env);
    const now = ctx.clock.now();
    const hasGrace = gracePeriodSeconds > 0;
    const after: Row = {
      ...before,
      secretVersion: before.secretVersion + 1,
      previousSecretExpiresAt: hasGrace ? new Date(now.getTime() + gracePeriodSeconds * 1000) : null,
      updatedAt: now,
    };
    const signingSecret = newSigningSecret();
    const sealed = sealSecret(ctx.vault, { organizationId, ...after }, signingSecret);
    await Promise.all([
      tx.query(sql`
        update webhook_subscriptions set
          previous_sealed_secret = ${hasGrace ? sql`sealed_secret` : sql`null`},
          previous_secret_expires_at = ${after.previousSecretExpiresAt}, sealed_secret = ${sealed},
          secret_version = ${after.secretVersion}, node_id = null, epoch = epoch + 1,
          updated_at = ${now}
        where organization_id = ${organizationId} and environment = ${after.environment}`),
      tx.query(recordEvent(ctx, now, draft(after, 'secret_rotated', changesBetween(before, after, ['secretVersion'])))),
    ]);
    announce(tx, ctx);
    return {
      signingSecret,
      secretVersion: after.secretVersion,
      previousSecretExpiresAt: after.previousSecretExpiresAt?.toISOString() ?? null,
    };
  });
}

function checkUrl(ctx: Context, url: string): void {
  if (url === testReceiverUrl) return;
  try {
    ctx.egress.check(url);
  } catch (error) {
    if (!(error instanceof UrlNotAllowed)) throw error;
    const hint = allowedUrlsHint(url);
    const isOfMachine = hint !== allowedUrlsHint('');
    const message = isOfMachine
      ? `${hint}, or use \`signalbox listen --forward-to ${url}\`, which needs neither`
      : hint;
    throw new ApiError('url_not_allowed', `url: ${message}`, { errors: [{ path: 'url', message }] });
  }
}

async function lockSubscription(tx: Tx, ctx: Context, environment: string): Promise<Row> {
  const [row] = await tx.query<Row>(sql`
    select ${columns()} from webhook_subscriptions w
    where organization_id = ${ctx.organizationId} and environment = ${environment} for update`);
  if (!row) throw notFound('webhook subscription');
  return row;
}

function newSigningSecret(): string {
  return `${signingSecretPrefix}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

function announce(tx: Tx, ctx: Context): void {
  tx.afterCommit(() => ctx.wake.publish('subscription', { organizationId: ctx.organizationId }));
}

function columns(): Sql {
  return sql`w.webhook_subscription_id as "webhookSubscriptionId", w.environment, w.url, w.chunk_types as "chunkTypes", w.status,
    w.disabled_reason as "disabledReason", w.sealed_secret as "sealedSecret",
    w.previous_sealed_secret as "previousSealedSecret", ${hasDeliveryNode()}, w.secret_version as "secretVersion",
    w.previous_secret_expires_at as "previousSecretExpiresAt", w.confirmed_secret_version as "confirmedSecretVersion",
    w.created_at as "createdAt", w.updated_at as "updatedAt", w.last_success_at as "lastSuccessAt",
    w.last_failure_at as "lastFailureAt", w.failing_since as "failingSince", w.failures, w.last_error as "lastError",
    w.last_status as "lastStatus", w.probe_at as "probeAt",
    w.failing_session_id as "failingSessionId", w.degraded as "isDegraded"`;
}

type What = 'created' | 'updated' | 'deleted' | 'secret_rotated' | 'enabled';

function draft(row: Row, what: What, changes: EventDraft['changes'] = null): EventDraft {
  return {
    type: `webhook_subscription.${what}`,
    resource: { type: 'webhook_subscription', id: formatId('whs', row.webhookSubscriptionId) },
    environment: row.environment,
    changes,
  };
}

function viewSubscription(ctx: Context, row: Row, now: Date): WebhookSubscription {
  const { failingSince, failures, lastError, lastStatus, probeAt, failingSessionId, isDegraded, ...others } = row;
  const { sealedSecret: _sealed, previousSealedSecret: _previous, hasDeliveryNode: _has, ...rest } = others;
  const { previousSecretExpiresAt: expiresAt } = rest;
  const block = blockOf(ctx, row, () => openSecrets(ctx, row));
  return {
    ...rest,
    webhookSubscriptionId: formatId('whs', row.webhookSubscriptionId),
    previousSecretExpiresAt: expiresAt && expiresAt > now ? expiresAt.toISOString() : null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    lastSuccessAt: row.lastSuccessAt?.toISOString() ?? null,
    lastFailureAt: row.lastFailureAt?.toISOString() ?? null,
    health: {
      state: block.blockedBy ? 'blocked' : isDegraded ? 'degraded' : failingSince ? 'failing' : 'healthy',
      ...block,
      failingSince: failingSince?.toISOString() ?? null,
      consecutiveFailures: failures,
      lastError,
      lastStatus,
      nextProbeAt: probeAt?.toISOString() ?? null,
      failingSessionId: failingSince && failingSessionId ? formatId('ses', failingSessionId) : null,
    },
  };
}
