// Finds the key of a request. The database decides about it for every request, so that a rotated or deleted key is refused at once on
// every node, and a node whose clock is slow accepts no expired key for longer. Either the key is looked up first: look-ups in the same
// tick share a round trip, and those of the same key share a statement. Or the transaction of the request checks that nothing has changed
// since the last look-up (http/auth/recalled-caller.ts).
import { hash } from 'node:crypto';
import type { Scope } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import { gather } from '../lib/gather.ts';
import { isWithin, parseNetwork } from '../lib/network.ts';
import { grantOf, type StoredGrant, scopesOf } from './access.ts';
import { whatIsWrong } from './malformed-secret.ts';
import { RETIRED_KEPT_MS } from './retired.ts';
import { type ParsedSecret, parseSecret, SECRET_LENGTH, sameHash } from './secret.ts';
import { type SessionTokenClaims, secretTagOf } from './session-token.ts';

/** A valid key. */
export interface AuthenticatedKey {
  organizationId: string;
  keyId: string;
  /** The hash of the secret that was sent. */
  secretHash: Buffer;
  name: string;
  scopes: ReadonlySet<Scope>;
  /** Null: any. */
  allowedIps: string[] | null;
  /** Null: all. */
  environments: string[] | null;
  /** Null: all. */
  agents: string[] | null;
  /** Who created it, as lib/identities.ts names them. */
  createdBy: string[];
  /** Null: no limit. */
  requestsPerMinute: number | null;
  /** Null: no limit. */
  maxCostUsdPerDay: number | null;
}

/** The refusal of a known key (its whole secret matched), 401 or, for its address, 403. It is recorded in the event log. */
export class KnownKeyRefused extends ApiError {
  readonly key: AuthenticatedKey;
  constructor(
    code: 'token_expired' | 'token_rotated' | 'token_revoked' | 'ip_not_allowed',
    detail: string,
    key: AuthenticatedKey,
  ) {
    super(code, detail);
    this.key = key;
  }
}

/** A key as this node last read it. It may have changed since. */
export interface RecalledKey {
  readonly key: AuthenticatedKey;
  /** Finds a row if the key is valid by now, and nothing has changed that `key` says. */
  readonly check: Sql;
  /** Call it when the check has found one. */
  noteUse(): void;
  /** Call it if not: the key is looked up instead. */
  forget(): void;
}

/** The key that created a session token, and whether the token is still valid. */
export interface TokenKey {
  readonly key: AuthenticatedKey;
  /** The web pages that the tokens of the organization can be used from. */
  readonly allowedOrigins: readonly string[];
  /** 401 `session_token_revoked` or `session_token_expired`. */
  readonly refusal: ApiError | undefined;
}

export interface Authenticator {
  /**
   * The key of an `Authorization` header that came from this address. Throws `missing_token`, `malformed_token`,
   * `invalid_token`, `token_expired`, `token_rotated`, `token_revoked` or `ip_not_allowed` (the last four only after the
   * whole secret matched).
   */
  authenticate(authorization: string | undefined, ipAddress: string): Promise<AuthenticatedKey>;
  /** The key that this header was last valid for; undefined if that is unknown, or the key could not be used from this address. */
  recall(authorization: string, ipAddress: string): RecalledKey | undefined;
  /** Looks up the key of a token that this service signed. Throws `session_token_revoked` if it no longer exists. */
  keyOfToken(claims: SessionTokenClaims): Promise<TokenKey>;
  /** Writes the pending values of `lastUsedAt`. */
  close(): Promise<void>;
}

interface Row extends Omit<AuthenticatedKey, 'scopes'>, StoredGrant {
  secretHash: Buffer;
  /** The hash of the secret before the last rotation, while it still works by the clock of the database. */
  oldSecretHash: Buffer | null;
  /** What it can do and is limited to, as one text. */
  reach: string;
  /** By the clock of the database. */
  expired: boolean;
  lastUsedAt: Date | null;
  deletedAt: Date | null;
}

interface TokenRow extends Row {
  allowedOrigins: string[];
}

/** Names a key. */
/** `isKnown`: the caller's credential was valid before. */
type KeyName = Pick<Row, 'organizationId' | 'keyId'> & { readonly isKnown?: boolean };

const MAX_REMEMBERED = 10_000;
const LAST_USED_EVERY_MS = 60_000;
// Compared in place of the hash of a key that doesn't exist: no text has this hash.
const NO_HASH = Buffer.alloc(32);

export function createAuthenticator({ db, shards, clock }: { db: Db; shards: Shards; clock: Clock }): Authenticator {
  const writes = new Set<Promise<unknown>>();
  // Keys whose use was recorded in this minute, so that a busy key is not written repeatedly before its row is read again.
  const notedAt = new Map<string, number>();
  /** By the hash of the header. Never a reason to accept a key. */
  const recalled = new Map<string, { row: Row; secretHash: Buffer }>();

  function remember(authorization: string, row: Row, secretHash: Buffer): void {
    const credential = credentialOf(authorization);
    recalled.delete(credential);
    recalled.set(credential, { row, secretHash });
    const [oldest] = recalled.keys();
    if (recalled.size > MAX_REMEMBERED && oldest !== undefined) recalled.delete(oldest);
  }

  /** Concurrent, so that a shard that hangs holds up only the keys of its own organizations. */
  const lookUp = gather<KeyName, Row | undefined>((names) => lookUpAll<Row>(names, readKey), { isConcurrent: true });
  const lookUpOfToken = gather<KeyName, TokenRow | undefined>((names) => lookUpAll<TokenRow>(names, readKeyOfToken), {
    isConcurrent: true,
  });

  async function lookUpAll<R extends Row>(
    names: readonly KeyName[],
    read: (name: KeyName) => Sql,
  ): Promise<(R | undefined | Promise<never>)[]> {
    const rows = new Map<string, R | undefined>();
    const failed = await shards.each(
      names,
      ({ organizationId }) => organizationId,
      async (ofShard) => {
        const keys = [...new Map(ofShard.map((name) => [idOf(name), name])).values()];
        const statements = keys.map(read);
        // Usually every request of a tick has the same key; one statement needs no transaction.
        const [{ organizationId, isKnown }] = keys as [KeyName];
        // An organization that an unknown caller names may not exist, and has no turn of its own.
        const on = isKnown ? db.of(organizationId) : db;
        const found = statements.length === 1 ? [await on.query<R>(statements[0]!)] : await db.batch<R>(statements);
        for (const [index, key] of keys.entries()) rows.set(idOf(key), found[index]![0]);
      },
    );
    const errors = new Map(failed.flatMap(({ items, error }) => items.map((name) => [name, error] as const)));
    return names.map((name) => (errors.has(name) ? Promise.reject(errors.get(name)) : rows.get(idOf(name))));
  }

  async function wasRotatedAway(secret: ParsedSecret): Promise<boolean> {
    const since = new Date(clock.now().getTime() - RETIRED_KEPT_MS);
    const rows = await db.query(sql`
      select 1 from retired_key_secrets
      where organization_id = ${secret.organizationId} and key_id = ${secret.keyId} and secret_hash = ${secret.hash}
        and retired_at > ${since}`);
    return rows.length > 0;
  }

  function noteUse(row: Row, now: Date): void {
    const id = idOf(row);
    const last = Math.max(row.lastUsedAt?.getTime() ?? 0, notedAt.get(id) ?? 0);
    if (now.getTime() - last < LAST_USED_EVERY_MS) return;
    if (notedAt.size >= MAX_REMEMBERED) notedAt.clear();
    notedAt.set(id, now.getTime());
    // Not awaited: the use is recorded in parallel, and the request succeeds even if recording it fails.
    const write = db
      .execute(sql`
        update api_keys set last_used_at = ${now}
        where organization_id = ${row.organizationId} and key_id = ${row.keyId}
          and (last_used_at is null or last_used_at < ${now})`)
      .catch(() => notedAt.delete(id))
      .finally(() => writes.delete(write));
    writes.add(write);
  }

  return {
    async authenticate(authorization, ipAddress) {
      const secret = secretOf(authorization);
      const row = await lookUp({ ...secret, isKnown: recalled.has(credentialOf(authorization!)) });
      const now = clock.now();
      const isNewest = sameHash(row?.secretHash ?? NO_HASH, secret.hash);
      const isOld = sameHash(row?.oldSecretHash ?? NO_HASH, secret.hash);
      if (!isNewest && !isOld) {
        // Queried for an unknown key as well: neither the work nor its duration may reveal which keys exist.
        const rotatedAway = await wasRotatedAway(secret);
        if (!row || !rotatedAway) throw unknown();
        throw new KnownKeyRefused(
          'token_rotated',
          'This secret was rotated away. Use the newest secret of the key.',
          keyOf(row),
        );
      }
      // No secret has the hash NO_HASH, so the row exists.
      const key = keyOf(row!);
      const { deletedAt, expired } = row!;
      if (deletedAt) {
        if (now.getTime() - deletedAt.getTime() > RETIRED_KEPT_MS) throw unknown();
        throw new KnownKeyRefused('token_revoked', 'This key was deleted. Use another key.', key);
      }
      if (expired) {
        throw new KnownKeyRefused('token_expired', 'This key has expired. Use another key.', key);
      }
      if (!isAllowed(key, ipAddress)) {
        throw new KnownKeyRefused(
          'ip_not_allowed',
          `This key may not be used from ${ipAddress}: its allowedIps have no such address.`,
          key,
        );
      }
      noteUse(row!, now);
      remember(authorization!, row!, secret.hash);
      return { ...key, secretHash: secret.hash };
    },

    recall(authorization, ipAddress) {
      const credential = credentialOf(authorization);
      const known = recalled.get(credential);
      if (!known || !isAllowed(known.row, ipAddress)) return undefined;
      const { row, secretHash } = known;
      return {
        key: { ...keyOf(row), secretHash },
        check: stillValid(row, secretHash),
        noteUse: () => noteUse(row, clock.now()),
        forget: () => void recalled.delete(credential),
      };
    },

    async keyOfToken(claims) {
      const row = await lookUpOfToken(claims);
      if (!row) throw tokenRevoked();
      const now = clock.now();
      const refusal = refusalOfToken(row, claims, now);
      if (!refusal) noteUse(row, now);
      return { key: keyOf(row), allowedOrigins: row.allowedOrigins, refusal };
    },

    async close() {
      await Promise.allSettled(writes);
    },
  };
}

// Every column that an `AuthenticatedKey` has, except for its secret. Compared as a whole because no column tells of every change: also one
// that was made in the database, or twice in a millisecond.
const REACH = sql`row(k.name, k.permission, k.scopes, k.allowed_ips, k.environments, k.agents, k.created_by, k.requests_per_minute,
  k.max_cost_usd_per_day)::text`;

const keyColumns = sql`k.organization_id as "organizationId", k.key_id as "keyId", k.name, k.permission, k.scopes,
  k.allowed_ips as "allowedIps", k.environments, k.agents, k.created_by as "createdBy",
  k.requests_per_minute as "requestsPerMinute", k.max_cost_usd_per_day::float8 as "maxCostUsdPerDay", k.secret_hash as "secretHash",
  case when k.old_secret_expires_at > now() then k.old_secret_hash end as "oldSecretHash",
  ${REACH} as reach, coalesce(k.expires_at <= now(), false) as expired, k.last_used_at as "lastUsedAt",
  k.deleted_at as "deletedAt"`;

// One statement per key. PostgreSQL would plan a statement over arrays of keys on every use: it assumes that the generic plan reads
// ten keys, so planning for the one that most look-ups have seems cheaper. Planning takes several times as long as the look-up.
function readKey({ organizationId, keyId }: KeyName): Sql {
  return sql`
    select ${keyColumns} from api_keys k where k.organization_id = ${organizationId} and k.key_id = ${keyId}`;
}

function readKeyOfToken({ organizationId, keyId }: KeyName): Sql {
  return sql`
    select ${keyColumns}, o.allowed_origins as "allowedOrigins"
    from api_keys k join organizations o on o.organization_id = k.organization_id
    where k.organization_id = ${organizationId} and k.key_id = ${keyId}`;
}

function stillValid({ organizationId, keyId, reach }: Row, secretHash: Buffer): Sql {
  return sql`
    select 1 from api_keys k
    where k.organization_id = ${organizationId} and k.key_id = ${keyId} and k.deleted_at is null
      and (k.expires_at is null or k.expires_at > now())
      and (k.secret_hash = ${secretHash} or (k.old_secret_hash = ${secretHash} and k.old_secret_expires_at > now()))
      and ${REACH} = ${reach}`;
}

function idOf({ organizationId, keyId }: Pick<Row, 'organizationId' | 'keyId'>): string {
  return `${organizationId}${keyId}`;
}

/** Why a token of this key is refused: the key or its secret is gone, or no longer reaches the token's environment or agent. */
function refusalOfToken(row: Row, claims: SessionTokenClaims, now: Date): ApiError | undefined {
  const { secretHash, oldSecretHash } = row;
  const isSecret = [secretHash, oldSecretHash].some((hash) => hash && secretTagOf(hash) === claims.secretTag);
  const isReached =
    (row.environments?.includes(claims.environment) ?? true) && (row.agents?.includes(claims.agentId) ?? true);
  if (row.deletedAt || row.expired || !isSecret || !isReached) return tokenRevoked();
  if (claims.expiresAt <= now) {
    return new ApiError(
      'session_token_expired',
      'This session token has expired. Request a new one from your backend.',
    );
  }
  return undefined;
}

function tokenRevoked(): ApiError {
  return new ApiError(
    'session_token_revoked',
    'The API key that created this session token was deleted, rotated or restricted, or has expired.',
  );
}

function unknown(): ApiError {
  return new ApiError('invalid_token', 'No API key has this secret. Is it a key of this service?');
}

function keyOf(row: Row): AuthenticatedKey {
  const { organizationId, keyId, secretHash, name, allowedIps, environments, agents, createdBy } = row;
  const { requestsPerMinute, maxCostUsdPerDay } = row;
  const access = { scopes: scopesOf(grantOf(row)), allowedIps, environments, agents };
  return { organizationId, keyId, secretHash, name, ...access, createdBy, requestsPerMinute, maxCostUsdPerDay };
}

function isAllowed({ allowedIps }: Pick<Row, 'allowedIps'>, ipAddress: string): boolean {
  return allowedIps === null || isWithin(allowedIps.map(parseNetwork), ipAddress);
}

function credentialOf(authorization: string): string {
  return hash('sha256', authorization, 'base64');
}

function secretOf(authorization: string | undefined): ParsedSecret {
  if (authorization === undefined || authorization.trim() === '') {
    throw new ApiError('missing_token', 'Send `Authorization: Bearer <API key>`.');
  }
  const [, bearer] = /^Bearer +([^\s]+)$/i.exec(authorization.trim()) ?? [];
  const secret = bearer && parseSecret(bearer);
  if (!secret) {
    throw new ApiError('malformed_token', whatIsWrong(authorization, SECRET_LENGTH));
  }
  return secret;
}
