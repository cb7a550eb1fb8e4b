// API keys. A secret is created here, returned once, and stored only as a hash.
import type { ApiKey, ApiKeyWithSecret, Event, Input, Permission, Result, Scope } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { spentToday } from '../budgets/key-spending.ts';
import type { Queryable, Tx } from '../db/db.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { changesBetween, type EventSource, recordEvent } from '../events/record.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { keyIdentity } from '../lib/identities.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import {
  grantOf,
  type KeyAccess,
  refuseWrongIps,
  requestedGrant,
  requiredGrant,
  requireNoMore,
  type StoredGrant,
  scopesOf,
  storedGrant,
} from './access.ts';
import { creatorsOf } from './creators.ts';
import { hashSecret, newSecret, previewOf } from './secret.ts';

interface Row extends KeyAccess {
  keyId: string;
  name: string;
  metadata: ApiKey['metadata'];
  secretPreview: string;
  /** Null unless the secret still works. */
  oldSecretPreview: string | null;
  oldSecretExpiresAt: Date | null;
  costUsdToday: number;
  lastUsedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

/** As it is in the database. */
type StoredRow = Omit<Row, 'scopes'> & StoredGrant;

/** The fields of a new key: a permission or scopes. */
export interface NewKey {
  name: string;
  permission?: Permission;
  scopes?: Scope[];
  expiresAt?: string | null;
  allowedIps?: string[] | null;
  environments?: string[] | null;
  agents?: string[] | null;
  requestsPerMinute?: number | null;
  maxCostUsdPerDay?: number | null;
  metadata?: ApiKey['metadata'];
  /** As `api_keys.created_by` has them. */
  createdBy?: readonly string[];
}

/**
 * Creates a key; 400 if `expiresAt` is not in the future or `allowedIps` is not a list of addresses, 404 for an unknown environment or
 * agent, 403 if it could do more than the key that creates it.
 */
export async function createKey(ctx: Context, input: Input<'createKey'>): Promise<Result<'createKey'>> {
  const now = ctx.clock.now();
  const access = accessOf(input);
  const apiKey = await inTransaction(ctx, async (tx, ctx) => {
    await requireManages(tx, ctx, access);
    return insertKey(tx, ctx, now, { ...input, createdBy: creatorsOf(ctx) });
  });
  return { apiKey };
}

/** Inserts a key and its event: for a request, or for the operator. Throws like `createKey`, except for 403. */
export async function insertKey(tx: Tx, source: EventSource, now: Date, input: NewKey): Promise<ApiKeyWithSecret> {
  const { organizationId } = source;
  if (input.expiresAt && instantOf(input.expiresAt, 'expiresAt') <= now)
    throw invalidField('expiresAt', 'must be in the future');
  const access = accessOf(input);
  await Promise.all([
    holdEnvironments(tx, organizationId, access.environments),
    requireAgents(tx, organizationId, access.agents),
  ]);
  const keyId = newUuid();
  const secret = newSecret(organizationId, keyId);
  const row: Row = {
    ...access,
    keyId,
    name: input.name,
    metadata: input.metadata ?? {},
    secretPreview: previewOf(secret),
    oldSecretPreview: null,
    oldSecretExpiresAt: null,
    costUsdToday: 0,
    lastUsedAt: null,
    createdAt: now,
    updatedAt: now,
  };
  const stored = storedGrant(row);
  await Promise.all([
    tx.query(sql`
      insert into api_keys (organization_id, key_id, name, permission, scopes, expires_at, allowed_ips, environments, agents,
        requests_per_minute, max_cost_usd_per_day, metadata, secret_hash, secret_preview, created_by, created_at, updated_at)
      values (${organizationId}, ${keyId}, ${row.name}, ${stored.permission}, ${stored.scopes}, ${row.expiresAt}, ${row.allowedIps},
        ${row.environments}, ${row.agents}, ${row.requestsPerMinute}, ${row.maxCostUsdPerDay}, ${JSON.stringify(row.metadata)},
        ${hashSecret(secret)}, ${row.secretPreview}, ${[...(input.createdBy ?? [])]}::text[], ${now}, ${now})`),
    tx.query(
      recordEvent(source, now, {
        type: 'api_key.created',
        resource: resourceOf(keyId),
        changes: changesBetween({}, auditedFields(row), audited),
      }),
    ),
  ]);
  return { ...keyFromRow(row), secret };
}

/** Live keys, newest first. */
export async function listKeys(ctx: Context, input: Input<'listKeys'>): Promise<Result<'listKeys'>> {
  const request = pageRequest(`keys:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<StoredRow>(sql`
    select ${columns(ctx)} from api_keys where organization_id = ${ctx.organizationId} and deleted_at is null
      ${request.after === undefined ? empty : sql`and key_id < ${request.after}`}
    order by key_id desc limit ${request.limit + 1}`);
  return pageOf(
    request,
    rows,
    (row) => row.keyId,
    (row) => keyFromRow(rowOf(row)),
  );
}

/** A live key; 404 for a deleted one. */
export async function getKey(ctx: Context, input: Input<'getKey'>): Promise<Result<'getKey'>> {
  return { apiKey: keyFromRow(await readKey(ctx.db, ctx, uuidOf('key', input.keyId))) };
}

/**
 * Changes name, permission or scopes, limits or metadata. If nothing differs, `updatedAt` stays and no event is recorded. 403 if the key
 * can do more than the key that changes it, before or after.
 */
export async function updateKey(ctx: Context, input: Input<'updateKey'>): Promise<Result<'updateKey'>> {
  const grant = requestedGrant(input);
  refuseWrongIps(input.allowedIps);
  const agents = input.agents?.map((agentId) => uuidOf('agt', agentId)) ?? input.agents;
  return inTransaction(ctx, async (tx, ctx) => {
    await Promise.all([
      holdEnvironments(tx, ctx.organizationId, input.environments),
      requireAgents(tx, ctx.organizationId, agents),
    ]);
    const before = await lockKey(tx, ctx, input.keyId);
    const after: Row = {
      ...before,
      ...grant,
      name: input.name ?? before.name,
      allowedIps: input.allowedIps === undefined ? before.allowedIps : input.allowedIps,
      environments: input.environments === undefined ? before.environments : input.environments,
      agents: agents === undefined ? before.agents : agents,
      requestsPerMinute: input.requestsPerMinute === undefined ? before.requestsPerMinute : input.requestsPerMinute,
      maxCostUsdPerDay: input.maxCostUsdPerDay === undefined ? before.maxCostUsdPerDay : input.maxCostUsdPerDay,
      metadata: input.metadata ?? before.metadata,
    };
    await requireManages(tx, ctx, before, after);
    const changes = changesBetween(auditedFields(before), auditedFields(after), [...audited, 'metadata']);
    if (!changes) return { apiKey: keyFromRow(before) };
    const now = ctx.clock.now();
    const stored = storedGrant(after);
    await Promise.all([
      tx.query(sql`
        update api_keys set name = ${after.name}, permission = ${stored.permission}, scopes = ${stored.scopes},
          allowed_ips = ${after.allowedIps}, environments = ${after.environments}, agents = ${after.agents},
          requests_per_minute = ${after.requestsPerMinute}, max_cost_usd_per_day = ${after.maxCostUsdPerDay},
          metadata = ${JSON.stringify(after.metadata)}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and key_id = ${before.keyId}`),
      tx.query(recordEvent(ctx, now, { type: 'api_key.updated', resource: resourceOf(before.keyId), changes })),
    ]);
    return { apiKey: keyFromRow({ ...after, updatedAt: now }) };
  });
}

/**
 * Creates a new secret. The old one is refused from the commit on, or after the grace period, by the clock of the database. A key has
 * two secrets at most: one that still works from an earlier rotation ends now. 403 for a key that can do more than the key that
 * rotates it.
 */
export async function rotateKey(ctx: Context, input: Input<'rotateKey'>): Promise<Result<'rotateKey'>> {
  const { gracePeriodSeconds = 0 } = input;
  return inTransaction(ctx, async (tx, ctx) => {
    const { organizationId } = ctx;
    const before = await lockKey(tx, ctx, input.keyId);
    await requireManages(tx, ctx, before);
    const { keyId } = before;
    const now = ctx.clock.now();
    const secret = newSecret(organizationId, keyId);
    const hasGrace = gracePeriodSeconds > 0;
    // The one who gets the new secret counts as the same approver as the key, like its creators.
    const holders = creatorsOf(ctx).filter((identity) => identity !== keyIdentity(keyId));
    const expiresAt = sql`now() + ${gracePeriodSeconds} * interval '1 second'`;
    const [, , [updated]] = await Promise.all([
      before.oldSecretPreview !== null && tx.query(retireOldSecret(organizationId, keyId, now)),
      tx.query(sql`
        insert into retired_key_secrets (organization_id, key_id, secret_hash, retired_at)
        select organization_id, key_id, secret_hash, ${hasGrace ? expiresAt : sql`${now}::timestamptz`}
        from api_keys where organization_id = ${organizationId} and key_id = ${keyId}`),
      tx.query<Pick<Row, 'oldSecretPreview' | 'oldSecretExpiresAt'>>(sql`
        update api_keys k set secret_hash = ${hashSecret(secret)}, secret_preview = ${previewOf(secret)}, updated_at = ${now},
          created_by = k.created_by || array(
            select h.holder from unnest(${holders}::text[]) h(holder) where h.holder <> all(k.created_by)),
          ${hasGrace ? sql`old_secret_hash = k.secret_hash, old_secret_preview = k.secret_preview, old_secret_expires_at = ${expiresAt}` : noOldSecret}
        where k.organization_id = ${organizationId} and k.key_id = ${keyId}
        returning k.old_secret_preview as "oldSecretPreview", k.old_secret_expires_at as "oldSecretExpiresAt"`),
    ]);
    const apiKey = keyFromRow({ ...before, ...updated, secretPreview: previewOf(secret), updatedAt: now });
    const { expiringSecret } = apiKey;
    const changes: Event['changes'] = expiringSecret && { expiringSecret: [null, expiringSecret] };
    await tx.query(recordEvent(ctx, now, { type: 'api_key.rotated', resource: resourceOf(keyId), changes }));
    return { apiKey: { ...apiKey, secret } };
  });
}

/** Ends the grace period of a rotation. Without an old secret that still works, nothing changes and no event is recorded. */
export async function deleteOldSecret(
  ctx: Context,
  input: Input<'deleteOldSecret'>,
): Promise<Result<'deleteOldSecret'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockKey(tx, ctx, input.keyId);
    await requireManages(tx, ctx, before);
    const { expiringSecret } = keyFromRow(before);
    if (expiringSecret === null) return { apiKey: keyFromRow(before) };
    const now = ctx.clock.now();
    const { organizationId } = ctx;
    const resource = resourceOf(before.keyId);
    await Promise.all([
      tx.query(retireOldSecret(organizationId, before.keyId, now)),
      tx.query(sql`
        update api_keys set ${noOldSecret}, updated_at = ${now}
        where organization_id = ${organizationId} and key_id = ${before.keyId}`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'api_key.old_secret_deleted',
          resource,
          changes: { expiringSecret: [expiringSecret, null] },
        }),
      ),
    ]);
    return { apiKey: keyFromRow({ ...before, oldSecretPreview: null, oldSecretExpiresAt: null, updatedAt: now }) };
  });
}

/** Revokes the key permanently, whatever it could do: this gives the caller nothing. */
export async function deleteKey(ctx: Context, input: Input<'deleteKey'>): Promise<Result<'deleteKey'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockKey(tx, ctx, input.keyId);
    const now = ctx.clock.now();
    await Promise.all([
      tx.query(sql`
        update api_keys set deleted_at = ${now}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and key_id = ${row.keyId}`),
      tx.query(recordEvent(ctx, now, { type: 'api_key.deleted', resource: resourceOf(row.keyId) })),
    ]);
    return { keyId: formatId('key', row.keyId), deleted: true };
  });
}

/** Throws 404: with a mistyped name the key would have access to nothing. */
async function holdEnvironments(
  tx: Tx,
  organizationId: string,
  names: readonly string[] | null | undefined,
): Promise<void> {
  await Promise.all((names ?? []).map((name) => lockEnvironment(tx, organizationId, name)));
}

/** Throws 404 for an agent that does not exist. */
async function requireAgents(
  tx: Tx,
  organizationId: string,
  agentIds: readonly string[] | null | undefined,
): Promise<void> {
  if (!agentIds) return;
  const found = await tx.query<{ agentId: string }>(sql`
    select agent_id as "agentId" from agents
    where organization_id = ${organizationId} and agent_id = any(${[...agentIds]}::uuid[]) and version > 0`);
  const missing = agentIds.find((id) => !found.some(({ agentId }) => agentId === id));
  if (missing) throw new ApiError('not_found', `There is no agent ${formatId('agt', missing)}.`);
}

/** Throws 403 if one of the keys can do more than the key that makes the request. A person who manages keys can do everything. */
async function requireManages(tx: Tx, ctx: Context, ...keys: readonly KeyAccess[]): Promise<void> {
  if (!ctx.keyId) return;
  const manager = await readKey(tx, ctx, ctx.keyId);
  for (const key of keys) requireNoMore(manager, key);
}

async function readKey(db: Queryable, ctx: Context, keyId: string): Promise<Row> {
  const [row] = await db.query<StoredRow>(sql`
    select ${columns(ctx)} from api_keys
    where organization_id = ${ctx.organizationId} and key_id = ${keyId} and deleted_at is null`);
  if (!row) throw notFound('API key');
  return rowOf(row);
}

async function lockKey(tx: Tx, ctx: Context, keyId: string): Promise<Row> {
  const [row] = await tx.query<StoredRow>(sql`
    select ${columns(ctx)} from api_keys
    where organization_id = ${ctx.organizationId} and key_id = ${uuidOf('key', keyId)} and deleted_at is null
    for update`);
  if (!row) throw notFound('API key');
  return rowOf(row);
}

/** A secret that still works is in `retired_key_secrets` with the time when it ends. */
function retireOldSecret(organizationId: string, keyId: string, now: Date): Sql {
  return sql`
    update retired_key_secrets set retired_at = ${now}
    where organization_id = ${organizationId} and key_id = ${keyId} and retired_at > now()`;
}

const noOldSecret = sql`old_secret_hash = null, old_secret_preview = null, old_secret_expires_at = null`;

function columns({ organizationId, clock }: Context): Sql {
  return sql`key_id as "keyId", name, permission, scopes, expires_at as "expiresAt", allowed_ips as "allowedIps", environments, agents,
    requests_per_minute as "requestsPerMinute", max_cost_usd_per_day::float8 as "maxCostUsdPerDay",
    ${spentToday(organizationId, sql`api_keys`, clock.now())} as "costUsdToday", metadata, secret_preview as "secretPreview",
    case when old_secret_expires_at > now() then old_secret_preview end as "oldSecretPreview",
    case when old_secret_expires_at > now() then old_secret_expires_at end as "oldSecretExpiresAt",
    last_used_at as "lastUsedAt", created_at as "createdAt", updated_at as "updatedAt"`;
}

function rowOf(row: StoredRow): Row {
  return { ...row, ...grantOf(row) };
}

/** Throws 400 for a permission and scopes, for neither, and for addresses that are none. */
function accessOf(input: NewKey): KeyAccess {
  refuseWrongIps(input.allowedIps);
  return {
    ...requiredGrant(input),
    expiresAt: input.expiresAt ? new Date(input.expiresAt) : null,
    allowedIps: input.allowedIps ?? null,
    environments: input.environments ?? null,
    agents: input.agents?.map((agentId) => uuidOf('agt', agentId)) ?? null,
    requestsPerMinute: input.requestsPerMinute ?? null,
    maxCostUsdPerDay: input.maxCostUsdPerDay ?? null,
  };
}

/** What the event log says about a key. */
const audited = [
  'name',
  'permission',
  'scopes',
  'allowedIps',
  'environments',
  'agents',
  'requestsPerMinute',
  'maxCostUsdPerDay',
] as const;

function auditedFields(row: Row) {
  return { ...row, agents: agentsOf(row) };
}

function agentsOf({ agents }: KeyAccess): string[] | null {
  return agents?.map((agentId) => formatId('agt', agentId)) ?? null;
}

function resourceOf(keyId: string) {
  return { type: 'api_key', id: formatId('key', keyId) };
}

function keyFromRow({ oldSecretPreview, oldSecretExpiresAt, ...row }: Row): ApiKey {
  return {
    keyId: formatId('key', row.keyId),
    name: row.name,
    permission: row.permission,
    scopes: [...scopesOf(row)],
    expiresAt: row.expiresAt?.toISOString() ?? null,
    allowedIps: row.allowedIps && [...row.allowedIps],
    environments: row.environments && [...row.environments],
    agents: agentsOf(row),
    requestsPerMinute: row.requestsPerMinute,
    maxCostUsdPerDay: row.maxCostUsdPerDay,
    costUsdToday: row.costUsdToday,
    metadata: row.metadata,
    secretPreview: row.secretPreview,
    expiringSecret:
      oldSecretExpiresAt === null ? null : { preview: oldSecretPreview!, expiresAt: oldSecretExpiresAt.toISOString() },
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
