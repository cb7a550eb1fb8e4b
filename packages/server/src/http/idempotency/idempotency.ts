// A POST with an `Idempotency-Key` acts once: for 24 hours the same request gets the first response again. Its record is inserted first,
// in the transaction of the change itself. Both are committed or neither, so after a crash the call has either done all of its work,
// and a retry gets its response, or nothing.
//
// A duplicate that arrives while the first request is running meets its uncommitted row. It waits 20 ms for it, then gets
// `idempotency_in_progress`.
import { createHash } from 'node:crypto';
import type { ErrorCode, Route } from '@signalbox/contract';
import canonicalize from 'canonicalize';
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../db/db.ts';
import { deleteAcross } from '../../db/delete-in-batches.ts';
import { commitPlanned, type PlannedChange, requireRow } from '../../db/planned-change.ts';
import { subjectsOf } from '../../idempotency/record-subjects.ts';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import type { Context, PoolContext } from '../../lib/context.ts';
import { jsonWithTexts } from '../../lib/json/json-text.ts';
import type { Platform } from '../../platform.ts';
import { openUnderCredential, sealUnderCredential } from '../../vault/vault.ts';
import { problemOf } from '../connection/errors.ts';

/** A response as text, and whether it repeats the first one. */
export interface IdempotentResponse {
  status: number;
  body: string;
  replayed: boolean;
}

export interface IdempotentRequest {
  key: string;
  method: string;
  path: string;
  body: unknown;
  /** The body's bytes as they were sent. */
  rawBody: Uint8Array | undefined;
  /** The caller's own credential: stored responses that contain a secret are sealed under it. */
  credential: string;
}

const KEPT_MS = 24 * 3600 * 1000;
// Sorting the fields of a 1 MiB body takes 100 ms. Clients that repeat a request this long send the same bytes.
const MAX_SORTED_BYTES = 64 * 1024;
// PostgreSQL's code for a lock that was not granted within lock_timeout.
const LOCK_NOT_AVAILABLE = '55P03';
// Refusals that depend on the resource are kept. Repeating the others is harmless: the request did not act.
const KEPT_REFUSALS = new Set([404, 409, 422]);
// Refusals of a part of a request say how far another one is, not what this one did.
const PASSING_REFUSALS = new Set<ErrorCode>(['idempotency_in_progress', 'idempotency_conflict']);

interface StoredResponse {
  fingerprint: Buffer;
  /** Null for a call that acts outside the database: it is running, or the service stopped in the middle of it. */
  status: number | null;
  body: string;
  sealedBody: Buffer | null;
}

/** Checks the header; throws a 400 that names it. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string' || !/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(header)) {
    throw invalidField('Idempotency-Key', 'must be 1 to 255 visible ASCII characters');
  }
  return header;
}

/** The key of a part of a request with this key. No client can send it: it is not ASCII. */
export function keyOfPart(key: string, id: string): string {
  return `${key} → ${id}`;
}

/** Runs `act` in a transaction with the record of the request, or returns the first response again. */
export async function actOnce(
  ctx: PoolContext,
  route: Route,
  request: IdempotentRequest,
  act: (ctx: Context) => Promise<unknown>,
): Promise<IdempotentResponse> {
  const place = [ctx.organizationId, ctx.callerId!, request.key];
  const fingerprint = fingerprintOf(request);
  if (route.actsOutside || route.each) return await actOutsideOnce(ctx, route, request, fingerprint, act);
  try {
    return await ctx.db.transaction(async (tx) => {
      if (!(await insertRecord(tx, ctx, request, fingerprint))) {
        return await replay(tx, ctx, request, place, fingerprint);
      }
      const { status, value } = await outcome(ctx, route, tx, act);
      const whole = jsonWithTexts(value);
      const shown = route.reveals && status < 400 ? JSON.stringify(withoutSecret(value, route.reveals)) : whole;
      const sealed = shown === whole ? null : sealUnderCredential(request.credential, place, whole);
      tx.write(sql`
        update idempotency_records set status = ${status}, body = ${shown}, sealed_body = ${sealed},
          subjects = ${subjectsOf(request, value)}
        where organization_id = ${ctx.organizationId} and caller_id = ${ctx.callerId} and idempotency_key = ${request.key}`);
      return { status, body: whole, replayed: false };
    });
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) throw inProgress();
    throw error;
  }
}

/** `actOnce` in one round trip, for a planned change. Undefined, and nothing is changed, for a repetition or if something differs. */
export async function actAsPlanned(
  ctx: PoolContext,
  route: Route,
  request: IdempotentRequest | undefined,
  planned: PlannedChange<unknown>,
): Promise<IdempotentResponse | undefined> {
  const response = { status: route.status, body: JSON.stringify(planned.result), replayed: false };
  const known = request && { ...response, subjects: subjectsOf(request, planned.result) };
  const record = request && requireRow(insertOf(ctx, request.key, fingerprintOf(request), known!));
  const statements = record ? [record, ...planned.statements] : planned.statements;
  return (await commitPlanned(ctx, ctx.organizationId, { ...planned, statements })) ? response : undefined;
}

function fingerprintOf({ method, path, body, rawBody }: IdempotentRequest): Buffer {
  const hash = createHash('sha256').update(JSON.stringify([method, path]));
  return hash.update(rawBody && rawBody.length > MAX_SORTED_BYTES ? rawBody : canonicalize(body)!).digest();
}

function inProgress(): ApiError {
  return new ApiError(
    'idempotency_in_progress',
    'The first request with this Idempotency-Key is still running. Retry in a moment.',
    { retryAfterSeconds: 1 },
  );
}

/**
 * The record is committed before the effect, so the effect never happens twice. A route with `each` acts in parts that have records of
 * their own, so a repeated request continues where an interrupted one stopped.
 */
async function actOutsideOnce(
  ctx: PoolContext,
  route: Route,
  request: IdempotentRequest,
  fingerprint: Buffer,
  act: (ctx: Context) => Promise<unknown>,
): Promise<IdempotentResponse> {
  const place = [ctx.organizationId, ctx.callerId!, request.key];
  let isFirst = false;
  const known = await ctx.db
    .transaction(async (tx) => {
      isFirst = await insertRecord(tx, ctx, request, fingerprint);
      return isFirst ? undefined : await replay(tx, ctx, request, place, fingerprint, route.each !== undefined);
    })
    .catch((error: unknown) => {
      throw (error as { code?: string }).code === LOCK_NOT_AVAILABLE ? inProgress() : error;
    });
  if (known) return known;
  const { status, value } = await statusAndValue(ctx, route, () => act(ctx)).catch(async (error: unknown) => {
    // The record of an earlier request, which this one continues, may be that of one that still runs.
    if (isFirst)
      await ctx.db.query(sql`
        delete from idempotency_records
        where organization_id = ${ctx.organizationId} and caller_id = ${ctx.callerId} and idempotency_key = ${request.key}
          and status is null`);
    throw error;
  });
  const body = jsonWithTexts(value);
  await ctx.db.query(sql`
    update idempotency_records set status = ${status}, body = ${body}, subjects = ${subjectsOf(request, value)}
    where organization_id = ${ctx.organizationId} and caller_id = ${ctx.callerId} and idempotency_key = ${request.key}`);
  return { status, body, replayed: false };
}

async function insertRecord(tx: Tx, ctx: Context, request: IdempotentRequest, fingerprint: Buffer): Promise<boolean> {
  const running = { status: null, body: null, subjects: subjectsOf(request) };
  const [, inserted] = await Promise.all([
    tx.query(sql`set local lock_timeout = '20ms'`),
    tx.execute(insertOf(ctx, request.key, fingerprint, running)),
    tx.query(sql`set local lock_timeout = 0`),
  ]);
  return inserted === 1;
}

/** One row, or none if there is a record that has not expired. */
function insertOf(
  ctx: Context,
  key: string,
  fingerprint: Buffer,
  { status, body, subjects }: { status: number | null; body: string | null; subjects: string[] },
): Sql {
  const now = ctx.clock.now();
  const expiresAt = new Date(now.getTime() + KEPT_MS);
  return sql`
    insert into idempotency_records as r (organization_id, caller_id, idempotency_key, fingerprint, status, body, subjects,
      expires_at)
    values (${ctx.organizationId}, ${ctx.callerId}, ${key}, ${fingerprint}, ${status}, ${body}, ${subjects}, ${expiresAt})
    on conflict (organization_id, caller_id, idempotency_key) do update
      set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body, sealed_body = null,
        subjects = excluded.subjects, expires_at = excluded.expires_at
      where r.expires_at <= ${now}
    returning 1`;
}

function replay(
  tx: Tx,
  ctx: Context,
  request: IdempotentRequest,
  place: string[],
  fingerprint: Buffer,
): Promise<IdempotentResponse>;
function replay(
  tx: Tx,
  ctx: Context,
  request: IdempotentRequest,
  place: string[],
  fingerprint: Buffer,
  continues: boolean,
): Promise<IdempotentResponse | undefined>;
async function replay(
  tx: Tx,
  ctx: Context,
  request: IdempotentRequest,
  place: string[],
  fingerprint: Buffer,
  continues = false,
): Promise<IdempotentResponse | undefined> {
  const [record] = await tx.query<StoredResponse>(sql`
    select fingerprint, status, body, sealed_body as "sealedBody" from idempotency_records
    where organization_id = ${ctx.organizationId} and caller_id = ${ctx.callerId} and idempotency_key = ${request.key}`);
  if (!record) throw inProgress();
  if (!record.fingerprint.equals(fingerprint)) {
    throw new ApiError(
      'idempotency_conflict',
      'This Idempotency-Key was used for a request with another path or body.',
    );
  }
  if (record.status === null) {
    if (continues) return undefined;
    throw inProgress();
  }
  let { body } = record;
  if (record.sealedBody) {
    try {
      body = openUnderCredential(request.credential, place, record.sealedBody);
    } catch {
      // The credential was rotated since, so the response is returned without the secret.
    }
  }
  return { status: record.status, body, replayed: true };
}

/** The result of `act`, or its refusal; a refusal rolls back what `act` changed, and not the record. */
function outcome(ctx: Context, route: Route, tx: Tx, act: (ctx: Context) => Promise<unknown>) {
  return statusAndValue(ctx, route, () => tx.savepoint(() => act({ ...ctx, db: tx })));
}

async function statusAndValue(
  ctx: Context,
  route: Route,
  act: () => Promise<unknown>,
): Promise<{ status: number; value: unknown }> {
  try {
    return { status: route.status, value: await act() };
  } catch (error) {
    if (error instanceof ApiError && KEPT_REFUSALS.has(error.status) && !PASSING_REFUSALS.has(error.code)) {
      return { status: error.status, value: problemOf(error, ctx.requestId!) };
    }
    throw error;
  }
}

function withoutSecret(value: unknown, path: string): unknown {
  const copy = structuredClone(value) as Record<string, unknown>;
  const parts = path.split('.');
  const last = parts.pop()!;
  const holder = parts.reduce((at, part) => at[part] as Record<string, unknown>, copy);
  delete holder[last];
  return copy;
}

/** Expired records have no effect any more; this frees their space. */
export function dropExpiredResponses(
  { shards }: Pick<Platform, 'shards'>,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  return deleteAcross(
    shards,
    'deleting expired idempotency records',
    signal,
    // Compared again, because a key that was reused since the select belongs to another request.
    (limit, within) => sql`
      delete from idempotency_records r using (
        select organization_id, caller_id, idempotency_key from idempotency_records
        where expires_at <= ${now} ${within()} order by expires_at ${limit}) old
      where r.organization_id = old.organization_id ${within(sql`r.organization_id`)} and r.caller_id = old.caller_id
        and r.idempotency_key = old.idempotency_key and r.expires_at <= ${now}`,
  );
}
