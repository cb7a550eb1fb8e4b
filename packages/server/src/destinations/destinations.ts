// The API of destinations. dispatcher.ts describes how records reach them.
//
// A destination is `enabled`, `paused` by a caller, or `disabled` by the service (`gone`: it responded with 410; `failing`: it has failed
// for 5 days). While it is not enabled, records wait in the log, as long as retention keeps them. Every change raises its `epoch` and
// unassigns it from its node, which claims and reads it again before it continues.
import { randomBytes } from 'node:crypto';
import {
  defaultGracePeriodSeconds,
  type Input,
  maxDestinations,
  type Result,
  signingSecretPrefix,
} from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { sealSecret } from '../deliveries/destinations/signing-secret.ts';
import { allowedUrlsHint, UrlNotAllowed } from '../egress/errors.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { typesMatching } from '../events/filter.ts';
import { changesBetween, recordEvent } from '../events/record.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { checkedHeaders, sealHeaders } from './destination/headers.ts';
import { dueNow } from './destination/health-store.ts';
import {
  columns,
  type DestinationRow,
  destinationEvent,
  lockDestination,
  readDestination,
  viewDestination,
} from './destination/view.ts';

const SECRET_BYTES = 32;

/** Newest first. */
export async function listDestinations(
  ctx: Context,
  input: Input<'listDestinations'>,
): Promise<Result<'listDestinations'>> {
  const request = pageRequest(`destinations:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<DestinationRow>(sql`
    select ${columns()} from destinations d where d.organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and d.destination_id < ${request.after}`}
      ${input.environment === undefined ? empty : sql`and d.environment = ${input.environment}`}
    order by d.destination_id desc limit ${request.limit + 1}`);
  return pageOf(
    request,
    rows,
    (row) => row.destinationId,
    (row) => viewDestination(ctx, row),
  );
}

export async function getDestination(ctx: Context, input: Input<'getDestination'>): Promise<Result<'getDestination'>> {
  const row = await readDestination(ctx.db, ctx, uuidOf('dst', input.destinationId));
  return { destination: viewDestination(ctx, row) };
}

/** 400 for an unknown type of record, 404 for an unknown environment or agent, 409 at the maximum, 422 `url_not_allowed`. */
export async function createDestination(
  ctx: Context,
  input: Input<'createDestination'>,
): Promise<Result<'createDestination'>> {
  const { organizationId } = ctx;
  typesMatching(input.eventTypes, 'eventTypes');
  requireAllowedUrl(ctx, input.url);
  const headers = checkedHeaders(input.headers ?? {});
  const destinationId = newUuid();
  const agentIds = input.agentIds?.map((id) => uuidOf('agt', id)) ?? null;
  const signingSecret = newSigningSecret();
  const identity = { organizationId, destinationId, secretVersion: 1 };
  return inTransaction(ctx, async (tx, ctx) => {
    // Serialized, so that there are never more than the maximum.
    await tx.query(sql`
      select 1 as one from organizations where organization_id = ${organizationId} for no key update`);
    const [[found]] = await Promise.all([
      tx.query<{ count: number }>(sql`
        select count(*)::int as count from destinations where organization_id = ${organizationId}`),
      input.environment !== undefined && lockEnvironment(tx, organizationId, input.environment),
      agentIds && requireAgents(tx, organizationId, agentIds),
    ]);
    if (found!.count >= maxDestinations) {
      throw new ApiError(
        'conflict',
        `There are ${maxDestinations} destinations, the most that are possible. Delete one.`,
      );
    }
    const now = ctx.clock.now();
    // What was recorded before, and has no number yet, comes before the record of the creation, which the reading starts with.
    await tx.query(sql`
      insert into destinations (organization_id, destination_id, name, type, event_types, environment, agent_ids, status,
        read_sequence, started, url, header_names, sealed_headers, sealed_secret, secret_version, created_at, updated_at)
      select h.organization_id, ${destinationId}::uuid, ${input.name}::text, ${input.type}::text, ${input.eventTypes}::text[],
        ${input.environment}::text, ${agentIds}::uuid[], 'enabled', h.sequence, false, ${input.url}::text,
        ${Object.keys(headers)}::text[], ${sealHeaders(ctx.vault, identity, headers)}::bytea,
        ${sealSecret(ctx.vault, identity, signingSecret)}::bytea, ${identity.secretVersion}::int, ${now}::timestamptz,
        ${now}::timestamptz
      from event_heads h where h.organization_id = ${organizationId}`);
    const row = await readDestination(tx, ctx, destinationId);
    const destination = viewDestination(ctx, row);
    const changes = changesBetween({}, destination, ['name', 'type', 'eventTypes', 'agentIds', 'url', 'headerNames']);
    await tx.query(recordEvent(ctx, now, destinationEvent(row, 'created', changes)));
    announce(tx, ctx);
    return { destination, signingSecret };
  });
}

/**
 * Changes apply from the next delivery on; filters, from the next record on. If the scheme, host or port of the url
 * changes, headers that the request does not give anew are deleted: they are secrets of the former receiver. Has the errors of `createDestination`.
 */
export async function updateDestination(
  ctx: Context,
  input: Input<'updateDestination'>,
): Promise<Result<'updateDestination'>> {
  const { organizationId } = ctx;
  if (input.eventTypes) typesMatching(input.eventTypes, 'eventTypes');
  if (input.url !== undefined) requireAllowedUrl(ctx, input.url);
  const given = input.headers && checkedHeaders(input.headers);
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockDestination(tx, ctx, uuidOf('dst', input.destinationId));
    const now = ctx.clock.now();
    const url = input.url ?? before.url;
    const headers = given ?? (new URL(url).origin === new URL(before.url).origin ? undefined : {});
    const after: DestinationRow = {
      ...before,
      name: input.name ?? before.name,
      eventTypes: input.eventTypes ?? before.eventTypes,
      agentIds: input.agentIds === undefined ? before.agentIds : uuidsOf(input.agentIds),
      url,
      headerNames: headers ? Object.keys(headers) : before.headerNames,
      sealedHeaders: headers ? sealHeaders(ctx.vault, before, headers) : before.sealedHeaders,
      status: input.status ?? before.status,
      disabledReason: input.status === undefined ? before.disabledReason : null,
      updatedAt: now,
    };
    if (input.agentIds) await requireAgents(tx, organizationId, after.agentIds!);
    const isEnabled = after.status === 'enabled' && before.status !== 'enabled';
    const shown = changesBetween(viewDestination(ctx, before), viewDestination(ctx, after), [
      ...(['name', 'eventTypes', 'agentIds', 'url', 'headerNames'] as const),
      ...(isEnabled ? [] : (['status'] as const)),
    ]);
    // New values of the same headers: the log can't show more than their names.
    const changes =
      shown ?? (headers ? { headerNames: [before.headerNames, after.headerNames] as [unknown, unknown] } : null);
    if (!changes && !isEnabled) return { destination: viewDestination(ctx, before) };
    // Another receiver, another key or enabling means that the caller expects it to work, so former failures don't count.
    const isFresh = isEnabled || headers !== undefined || url !== before.url;
    if (isFresh) Object.assign(after, healthy);
    await tx.query(sql`
      update destinations set name = ${after.name}, event_types = ${after.eventTypes}, agent_ids = ${after.agentIds},
        url = ${url}, header_names = ${after.headerNames}, sealed_headers = ${after.sealedHeaders}, status = ${after.status},
        disabled_reason = ${after.disabledReason}, node_id = null, epoch = epoch + 1, updated_at = ${now}
        ${
          isFresh
            ? sql`, failing_since = null, failures = 0, failing_lane = null, last_error = null, last_status = null,
          probe_at = null, degraded = false`
            : empty
        }
      where organization_id = ${organizationId} and destination_id = ${after.destinationId}`);
    if (isFresh) await tx.query(dueNow(after, now));
    if (changes) await tx.query(recordEvent(ctx, now, destinationEvent(after, 'updated', changes)));
    if (isEnabled) {
      const enabled = changesBetween(before, after, ['status']);
      await tx.query(recordEvent(ctx, now, destinationEvent(after, 'enabled', enabled)));
    }
    announce(tx, ctx);
    return { destination: viewDestination(ctx, after) };
  });
}

/** Upkeep deletes its deliveries (retention.ts). */
export async function deleteDestination(
  ctx: Context,
  input: Input<'deleteDestination'>,
): Promise<Result<'deleteDestination'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockDestination(tx, ctx, uuidOf('dst', input.destinationId));
    await Promise.all([
      tx.query(sql`
        delete from destinations where organization_id = ${organizationId} and destination_id = ${row.destinationId}`),
      tx.query(recordEvent(ctx, ctx.clock.now(), destinationEvent(row, 'deleted'))),
    ]);
    announce(tx, ctx);
    return { destinationId: input.destinationId, deleted: true };
  });
}

/** Creates a new signing secret. The previous one also signs until the end of the grace period; any older one stops signing. */
export async function rotateDestinationSecret(
  ctx: Context,
  input: Input<'rotateDestinationSecret'>,
): Promise<Result<'rotateDestinationSecret'>> {
  const { organizationId } = ctx;
  const { gracePeriodSeconds = defaultGracePeriodSeconds } = input;
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockDestination(tx, ctx, uuidOf('dst', input.destinationId));
    const now = ctx.clock.now();
    const hasGrace = gracePeriodSeconds > 0;
    const after: DestinationRow = {
      ...before,
      secretVersion: before.secretVersion + 1,
      previousSecretExpiresAt: hasGrace ? new Date(now.getTime() + gracePeriodSeconds * 1000) : null,
    };
    const signingSecret = newSigningSecret();
    await Promise.all([
      tx.query(sql`
        update destinations set previous_sealed_secret = ${hasGrace ? sql`sealed_secret` : sql`null`},
          previous_secret_expires_at = ${after.previousSecretExpiresAt},
          sealed_secret = ${sealSecret(ctx.vault, after, signingSecret)}, secret_version = ${after.secretVersion},
          node_id = null, epoch = epoch + 1, updated_at = ${now}
        where organization_id = ${organizationId} and destination_id = ${after.destinationId}`),
      tx.query(
        recordEvent(
          ctx,
          now,
          destinationEvent(after, 'secret_rotated', changesBetween(before, after, ['secretVersion'])),
        ),
      ),
    ]);
    announce(tx, ctx);
    return {
      signingSecret,
      secretVersion: after.secretVersion,
      previousSecretExpiresAt: after.previousSecretExpiresAt?.toISOString() ?? null,
    };
  });
}

/** The nodes read it again once the transaction is committed. */
export function announce(tx: Tx, ctx: Context): void {
  tx.afterCommit(() => ctx.wake.publish('subscription', { organizationId: ctx.organizationId }));
}

/** The health of a destination without failures. */
const healthy = {
  failingSince: null,
  failures: 0,
  lastError: null,
  lastStatus: null,
  probeAt: null,
  isDegraded: false,
};

function requireAllowedUrl({ egress }: Pick<Context, 'egress'>, url: string): void {
  try {
    egress.check(url);
  } catch (error) {
    if (!(error instanceof UrlNotAllowed)) throw error;
    const message = allowedUrlsHint(url);
    throw new ApiError('url_not_allowed', `url: ${message}`, { errors: [{ path: 'url', message }] });
  }
}

async function requireAgents(tx: Tx, organizationId: string, agentIds: readonly string[]): Promise<void> {
  const found = await tx.execute(sql`
    select 1 from agents where organization_id = ${organizationId} and agent_id = any(${[...agentIds]}::uuid[])`);
  if (found < agentIds.length) throw notFound('agent');
}

function uuidsOf(agentIds: readonly string[] | null): string[] | null {
  return agentIds?.map((id) => uuidOf('agt', id)) ?? null;
}

function newSigningSecret(): string {
  return `${signingSecretPrefix}${randomBytes(SECRET_BYTES).toString('base64')}`;
}
