// API keys. A secret is created here, returned once, and stored only as a hash.
import {
  type ApiKey,
  type ApiKeyWithSecret,
  type Input,
  type Permission,
  permissionOfRole,
  type Result,
} from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { changesBetween, type EventSource, recordEvent } from '../events/record.ts';
import { invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { parseNetwork } from '../lib/network.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { hashSecret, newSecret, previewOf } from './secret.ts';

interface Row {
  keyId: string;
  name: string;
  permission: Permission;
  expiresAt: Date | null;
  allowedIps: string[] | null;
  environments: string[] | null;
  metadata: ApiKey['metadata'];
  secretPreview: string;
  lastUsedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

/** The fields of a new key. */
export interface NewKey {
  name: string;
  permission: Permission;
  expiresAt?: string | null;
  allowedIps?: string[] | null;
  environments?: string[] | null;
  metadata?: ApiKey['metadata'];
}

/** Creates a key; 400 if `expiresAt` is not in the future or `allowedIps` is not a list of addresses, 404 for an unknown environment. */
export async function createKey(ctx: Context, input: Input<'createKey'>): Promise<Result<'createKey'>> {
  const now = ctx.clock.now();
  if (input.expiresAt && instantOf(input.expiresAt, 'expiresAt') <= now)
    throw invalidField('expiresAt', 'must be in the future');
  const apiKey = await inTransaction(ctx, (tx, ctx) => insertKey(tx, ctx, now, input));
  return { apiKey };
}

/** Inserts a key and its event: for a request, or for the operator on the host. Throws like `createKey`, except for `expiresAt`. */
export async function insertKey(tx: Tx, source: EventSource, now: Date, input: NewKey): Promise<ApiKeyWithSecret> {
  const { organizationId } = source;
  refuseWrongIps(input.allowedIps);
  await holdEnvironments(tx, organizationId, input.environments);
  const keyId = newUuid();
  const secret = newSecret(organizationId, keyId);
  const row: Row = {
    keyId,
    name: input.name,
    permission: input.permission,
    expiresAt: input.expiresAt ? new Date(input.expiresAt) : null,
    allowedIps: input.allowedIps ?? null,
    environments: input.environments ?? null,
    metadata: input.metadata ?? {},
    secretPreview: previewOf(secret),
    lastUsedAt: null,
    createdAt: now,
    updatedAt: now,
  };
  await Promise.all([
    tx.query(sql`
      insert into api_keys (organization_id, key_id, name, permission, expires_at, allowed_ips, environments, metadata,
        secret_hash, secret_preview, created_at, updated_at)
      values (${organizationId}, ${keyId}, ${row.name}, ${row.permission}, ${row.expiresAt}, ${row.allowedIps},
        ${row.environments}, ${JSON.stringify(row.metadata)}, ${hashSecret(secret)}, ${row.secretPreview}, ${now}, ${now})`),
    tx.query(
      recordEvent(source, now, {
        type: 'api_key.created',
        resource: resourceOf(keyId),
        changes: {
          name: [null, row.name],
          permission: [null, row.permission],
          ...(row.allowedIps && { allowedIps: [null, row.allowedIps] }),
          ...(row.environments && { environments: [null, row.environments] }),
        },
      }),
    ),
  ]);
  return { ...keyFromRow(row), secret };
}

/** Live keys, newest first. */
export async function listKeys(ctx: Context, input: Input<'listKeys'>): Promise<Result<'listKeys'>> {
  const request = pageRequest(`keys:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select ${columns()} from api_keys where organization_id = ${ctx.organizationId} and deleted_at is null
      ${request.after === undefined ? empty : sql`and key_id < ${request.after}`}
    order by key_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.keyId, keyFromRow);
}

/** A live key; 404 for a deleted one. */
export async function getKey(ctx: Context, input: Input<'getKey'>): Promise<Result<'getKey'>> {
  const [row] = await ctx.db.query<Row>(sql`
    select ${columns()} from api_keys
    where organization_id = ${ctx.organizationId} and key_id = ${uuidOf('key', input.keyId)} and deleted_at is null`);
  if (!row) throw notFound('API key');
  return { apiKey: keyFromRow(row) };
}

/** Changes name, permission, limits or metadata. If nothing differs, `updatedAt` stays and no event is recorded. */
export async function updateKey(ctx: Context, input: Input<'updateKey'>): Promise<Result<'updateKey'>> {
  refuseWrongIps(input.allowedIps);
  return inTransaction(ctx, async (tx, ctx) => {
    await holdEnvironments(tx, ctx.organizationId, input.environments);
    const before = await lockKey(tx, ctx, input.keyId);
    const after = {
      ...before,
      name: input.name ?? before.name,
      permission: input.permission ?? before.permission,
      allowedIps: input.allowedIps === undefined ? before.allowedIps : input.allowedIps,
      environments: input.environments === undefined ? before.environments : input.environments,
      metadata: input.metadata ?? before.metadata,
    };
    const changes = changesBetween(before, after, ['name', 'permission', 'allowedIps', 'environments', 'metadata']);
    if (!changes) return { apiKey: keyFromRow(before) };
    const now = ctx.clock.now();
    await Promise.all([
      tx.query(sql`
        update api_keys set name = ${after.name}, permission = ${after.permission},
          allowed_ips = ${after.allowedIps}, environments = ${after.environments},
          metadata = ${JSON.stringify(after.metadata)}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and key_id = ${before.keyId}`),
      tx.query(recordEvent(ctx, now, { type: 'api_key.updated', resource: resourceOf(before.keyId), changes })),
    ]);
    return { apiKey: keyFromRow({ ...after, updatedAt: now }) };
  });
}

/** Creates a new secret; the old one is refused from the commit on. */
export async function rotateKey(ctx: Context, input: Input<'rotateKey'>): Promise<Result<'rotateKey'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockKey(tx, ctx, input.keyId);
    const now = ctx.clock.now();
    const secret = newSecret(ctx.organizationId, row.keyId);
    await Promise.all([
      tx.query(sql`
        insert into retired_key_secrets (organization_id, key_id, secret_hash, retired_at)
        select organization_id, key_id, secret_hash, ${now}::timestamptz from api_keys
        where organization_id = ${ctx.organizationId} and key_id = ${row.keyId}`),
      tx.query(sql`
        update api_keys set secret_hash = ${hashSecret(secret)}, secret_preview = ${previewOf(secret)}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and key_id = ${row.keyId}`),
      tx.query(recordEvent(ctx, now, { type: 'api_key.rotated', resource: resourceOf(row.keyId) })),
    ]);
    return { apiKey: { ...keyFromRow({ ...row, secretPreview: previewOf(secret), updatedAt: now }), secret } };
  });
}

/** Revokes the key permanently. */
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

/** Describes the caller. */
export async function getMe(ctx: Context): Promise<Result<'getMe'>> {
  const [organization] = await ctx.db.query<{ name: string }>(
    sql`select name from organizations where organization_id = ${ctx.organizationId}`,
  );
  const { person } = ctx;
  const apiKey = ctx.keyId ? (await getKey(ctx, { keyId: formatId('key', ctx.keyId) })).apiKey : null;
  return {
    organization: { organizationId: formatId('org', ctx.organizationId), name: organization!.name },
    apiKey,
    user: person ? { userId: formatId('usr', person.userId), name: person.name, email: person.email } : null,
    permission: person ? permissionOfRole[person.role] : apiKey!.permission,
  };
}

function refuseWrongIps(allowedIps: readonly string[] | null | undefined): void {
  for (const [index, text] of (allowedIps ?? []).entries()) {
    try {
      parseNetwork(text);
    } catch (error) {
      throw invalidField(`allowedIps[${index}]`, `"${text}" ${(error as Error).message}`);
    }
  }
}

/** Throws 404: with a mistyped name the key would have access to nothing. */
async function holdEnvironments(
  tx: Tx,
  organizationId: string,
  names: readonly string[] | null | undefined,
): Promise<void> {
  await Promise.all((names ?? []).map((name) => lockEnvironment(tx, organizationId, name)));
}

async function lockKey(tx: Tx, ctx: Context, keyId: string): Promise<Row> {
  const [row] = await tx.query<Row>(sql`
    select ${columns()} from api_keys
    where organization_id = ${ctx.organizationId} and key_id = ${uuidOf('key', keyId)} and deleted_at is null
    for update`);
  if (!row) throw notFound('API key');
  return row;
}

function columns(): Sql {
  return sql`key_id as "keyId", name, permission, expires_at as "expiresAt", allowed_ips as "allowedIps", environments, metadata,
    secret_preview as "secretPreview",
    last_used_at as "lastUsedAt", created_at as "createdAt", updated_at as "updatedAt"`;
}

function resourceOf(keyId: string) {
  return { type: 'api_key', id: formatId('key', keyId) };
}

function keyFromRow(row: Row): ApiKey {
  return {
    ...row,
    keyId: formatId('key', row.keyId),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
