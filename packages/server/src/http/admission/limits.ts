// Limits against abuse, in the order in which a request passes them. Each applies to this node alone, unless it says otherwise.
//
//   requests in flight       503 before anything is read or looked up (admission.ts): requests that wait for the database use memory
//   failed authentication    429 for an address that was refused too often in a minute. A credential that was valid recently is still
//                            looked up, so that callers that share an address, or a proxy that is not configured as trusted,
//                            do not lock each other out
//   signing in               429 for an address or an email that was tried too often in a minute
//   share links              429 for an address that reads them too often in a minute
//   requests of a caller     429 by reads, writes and key management, if the operator set limits for a minute
//   requests of a key        429 by the key's own limit, over all nodes (keys/request-limits.ts)
//   streams of a caller      429: open streams and long polls count here instead of as requests in flight
//   with a session token     429 in windows of their own, by session or end user
//   open sessions            429 for an organization that has its maximum (counted in the database)
//
// Costly work takes turns on the event loop (loop-queue.ts), so that it delays its own caller first.
// What the HTTP parser itself refuses (headers, slow requests) is in server.ts.
import { createHash, hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode, Route, RouteName, SchemaObject } from '@signalbox/contract';
import type { FastifyReply } from 'fastify';
import sql from 'sql-template-tag';
import type { Reach } from '../../budgets/budgets.ts';
import { isSpent, secondsLeftToday } from '../../budgets/key-spending.ts';
import { isFor } from '../../budgets/stops.ts';
import { createRequestLimits } from '../../keys/request-limits.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Context } from '../../lib/context.ts';
import { uuidOf } from '../../lib/ids.ts';
import { networkOf } from '../../lib/network.ts';
import { defaultOfTokens, type RateClass, type RateLimits } from '../../lib/rate-limits.ts';
import type { Platform } from '../../platform.ts';
import type { Caller } from '../auth/auth.ts';
import { onceClosed } from '../connection/closed.ts';
import { createWindows, WINDOW_SECONDS } from './windows.ts';

/** 0 is no limit, except for `maxRequestsInFlight`, `maxUploads` and `maxUnreadMegabytes` (admission.ts, unread-bound.ts). */
export interface LimitSettings {
  readonly rateLimits: RateLimits;
  readonly authFailuresPerMinute: number;
  readonly maxRequestsInFlight: number;
  /** At the same time; one organization can have half of them. */
  readonly maxUploads: number;
  readonly maxStreamsPerKey: number;
  /** For all responses and streams that wait for their clients to read, together. */
  readonly maxUnreadMegabytes: number;
  readonly maxOpenSessions: number;
}

export interface Limits {
  /** Whether the caller's credential was valid recently. */
  isTrusted(caller: Caller): boolean;
  /** Runs `authenticate`, unless the address was refused too often; throws 429 `rate_limited` then. */
  throttle<T>(caller: Caller, authenticate: () => Promise<T>): Promise<T>;
  /** Remembers that the caller's credential is valid. */
  trust(caller: Caller): void;
  /**
   * Runs `attempt` to sign in, which resolves to undefined if it was refused and throws if it failed otherwise; only refusals count.
   * Without an email it is counted by its address alone: passkeys can't be guessed, and everyone who has one would share a limit
   * that a stranger can use up. Throws 429 `rate_limited`.
   */
  signIn<T>(
    ipAddress: string,
    email: string | undefined,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined>;
  /** Counts a start of a sign-in, which needs no credential and costs a row for minutes. Throws 429 `rate_limited`. */
  startSignIn(ipAddress: string): void;
  /** Counts a read of a share link. Throws 429 `rate_limited`. */
  readShare(ipAddress: string): void;
  /** Counts the request and sets the `RateLimit` headers. Throws 429 `rate_limited`. */
  countRequest(ctx: Context, route: Route, reply: FastifyReply): void;
  /** Whether `countRequest` counts requests of keys for this route. */
  counts(route: Route): boolean;
  /** `countRequest` for a key with a limit of its own. */
  countRequestOfKey(ctx: Context, reply: FastifyReply): Promise<void>;
  /** Counts a stream or long poll until its response, or the connection that it has taken, is closed. Throws 429 `rate_limited`. */
  countStream(ctx: Context, response: ServerResponse | Socket): void;
}

// Failures from one address may be a mistyped password. From many addresses they are an attack, and a limit on all of them together
// locks out the owner as well. A long password is what resists; the limit only slows the attack down.
const SIGN_INS_OF_ADDRESS_AND_EMAIL = 10;
const SIGN_INS_OF_EMAIL = 100;
// For an office behind one address; a person starts one or two.
const BEGINNINGS_OF_ADDRESS = 120;

// For an office in which many read the same link: an open page asks every three seconds.
const SHARE_READS_OF_ADDRESS = 600;

// A request without a key guesses none and costs no look-up. A sign-in or a session token that has ended was valid once.
const notGuesses: ReadonlySet<ErrorCode> = new Set([
  'missing_token',
  'signed_out',
  'session_token_expired',
  'session_token_revoked',
]);

// For a page that is open in several tabs.
const STREAMS_OF_TOKEN = 3;

/** How long a credential that was valid bypasses the throttle of its address. */
const TRUSTED_MS = 3600_000;
const MAX_TRUSTED = 10_000;

export function createLimits(settings: LimitSettings, { db, clock }: Pick<Platform, 'db' | 'clock'>): Limits {
  const { rateLimits, authFailuresPerMinute, maxStreamsPerKey } = settings;
  const requests = createWindows(clock);
  const requestsOfKeys = createRequestLimits({ db, clock });
  const failures = createWindows(clock);
  const signIns = createWindows(clock);
  const shareReads = createWindows(clock);
  const trusted = createTrusted(clock);
  const streams = new Map<string, number>();

  return {
    isTrusted: (caller) => trusted.has(credentialOf(caller)),

    trust: (caller) => trusted.add(credentialOf(caller)),

    async throttle(caller, authenticate) {
      const credential = credentialOf(caller);
      const network = networkOf(caller.ipAddress);
      const { used, resetSeconds } = failures.peek(network);
      if (authFailuresPerMinute > 0 && used >= authFailuresPerMinute && !trusted.has(credential)) {
        throw new ApiError('rate_limited', 'Too many requests from your address were refused. Retry later.', {
          retryAfterSeconds: resetSeconds,
        });
      }
      try {
        const ctx = await authenticate();
        trusted.add(credential);
        return ctx;
      } catch (error) {
        const isGuess = error instanceof ApiError && error.status === 401;
        if (isGuess && !notGuesses.has(error.code)) failures.add(network);
        throw error;
      }
    },

    async signIn(ipAddress, email, attempt) {
      const network = networkOf(ipAddress);
      const counted: [name: string, limit: number][] = [[network, authFailuresPerMinute]];
      if (email !== undefined) {
        const account = createHash('sha256').update(email.toLowerCase()).digest('base64');
        counted.push([`${network} ${account}`, SIGN_INS_OF_ADDRESS_AND_EMAIL], [account, SIGN_INS_OF_EMAIL]);
      }
      // Counted before the attempt, or many at once would all pass.
      for (const [name, limit] of counted) {
        const { used, resetSeconds } = signIns.add(name);
        if (limit > 0 && used > limit) {
          throw new ApiError('rate_limited', 'Too many failed sign-ins. Wait a minute.', {
            retryAfterSeconds: resetSeconds,
          });
        }
      }
      let refused = false;
      try {
        const result = await attempt();
        refused = result === undefined;
        return result;
      } finally {
        // An attempt that failed without a verdict is not a guess.
        if (!refused) for (const [name] of counted) signIns.undo(name);
      }
    },

    startSignIn(ipAddress) {
      const { used, resetSeconds } = signIns.add(`begin ${networkOf(ipAddress)}`);
      if (used > BEGINNINGS_OF_ADDRESS) {
        throw new ApiError('rate_limited', 'Too many sign-ins were started from your address. Wait a minute.', {
          retryAfterSeconds: resetSeconds,
        });
      }
    },

    readShare(ipAddress) {
      const { used, resetSeconds } = shareReads.add(networkOf(ipAddress));
      if (used > SHARE_READS_OF_ADDRESS) {
        throw new ApiError('rate_limited', 'Too many requests from your address. Wait a minute.', {
          retryAfterSeconds: resetSeconds,
        });
      }
    },

    countRequest(ctx, route, reply) {
      const rateClass = ctx.token ? 'tokens' : rateClassOf(route);
      const limit = rateLimits[rateClass] ?? (ctx.token && defaultOfTokens);
      if (!limit) return;
      const { used, resetSeconds } = requests.add(`${rateClass} ${ctx.callerId}`);
      reply.header('RateLimit-Policy', `"${rateClass}";q=${limit};w=${WINDOW_SECONDS}`);
      reply.header('RateLimit', `"${rateClass}";r=${Math.max(0, limit - used)};t=${resetSeconds}`);
      if (used > limit) {
        const kind = ctx.token ? 'with session tokens' : `of this kind (${rateClass})`;
        throw new ApiError('rate_limited', `The limit is ${limit} requests ${kind} per minute.`, {
          retryAfterSeconds: resetSeconds,
        });
      }
    },

    counts: (route) => Boolean(rateLimits[rateClassOf(route)]),

    async countRequestOfKey({ organizationId, keyId, requestsPerMinute: limit }, reply) {
      if (keyId === null || limit === undefined) return;
      const { isAdmitted, remaining, resetSeconds } = await requestsOfKeys.count({ organizationId, keyId }, limit);
      addToHeader(reply, 'RateLimit-Policy', `"key";q=${limit};w=${WINDOW_SECONDS}`);
      addToHeader(reply, 'RateLimit', `"key";r=${remaining};t=${resetSeconds}`);
      if (isAdmitted) return;
      throw new ApiError('rate_limited', `The key is limited to ${limit} requests per minute.`, {
        retryAfterSeconds: resetSeconds,
      });
    },

    countStream(ctx, response) {
      const id = ctx.callerId;
      const limit = ctx.token ? STREAMS_OF_TOKEN : maxStreamsPerKey;
      if (limit === 0 || id === null) return;
      const others = streams.get(id) ?? 0;
      if (others >= limit) {
        throw new ApiError(
          'rate_limited',
          `The caller has ${others} streams and long polls open, which is the limit.`,
          {
            retryAfterSeconds: 1,
          },
        );
      }
      streams.set(id, others + 1);
      onceClosed(response, () => {
        const left = streams.get(id)! - 1;
        if (left > 0) streams.set(id, left);
        else streams.delete(id);
      });
    },
  };
}

/**
 * Throws 429 if the organization has its maximum of open sessions. Sessions that are opened at the same moment may all pass: to prevent
 * it, every start and end of a session would have to lock the same row.
 */
export async function requireRoom(ctx: Context, maxOpenSessions: number): Promise<void> {
  const [row] = await ctx.db.query<{ open: number }>(sql`
    select count(*)::integer as open from (
      select 1 from sessions s where s.organization_id = ${ctx.organizationId} and s.ended_at is null
      limit ${maxOpenSessions}) counted`);
  if (row!.open >= maxOpenSessions) {
    throw new ApiError(
      'rate_limited',
      `The organization has ${maxOpenSessions} open sessions, which is the limit. Close or cancel some first.`,
    );
  }
}

/** Before a route that makes a session work. */
export async function requireBudgets(
  ctx: Context,
  name: RouteName,
  input: Readonly<Record<string, unknown>>,
): Promise<void> {
  await requireKeyBudget(ctx);
  await requireOpenBudget(ctx, name, input);
}

/**
 * Throws 429 `key_budget_exceeded` if the sessions of the key have cost what they can in a day. Sessions that are running end their turns
 * at the next model call (budgets/session-spending.ts).
 */
async function requireKeyBudget(ctx: Context): Promise<void> {
  const { keySpending, clock, organizationId, keyId, maxCostUsdPerDay } = ctx;
  const spent = keyId === null ? undefined : await keySpending.of(organizationId, keyId, maxCostUsdPerDay);
  if (!spent || !isSpent(spent)) return;
  throw new ApiError(
    'key_budget_exceeded',
    `The sessions of this key can cost ${spent.limitUsd} USD in a UTC day, and have.`,
    { retryAfterSeconds: secondsLeftToday(clock.now()) },
  );
}

/**
 * Throws 429 `budget_exceeded` if a budget with `stop` is used up that is for the session: the one that is named, or the one that is to be
 * opened.
 */
async function requireOpenBudget(
  ctx: Context,
  name: RouteName,
  input: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { organizationId } = ctx;
  const usedUp = (await ctx.budgetStops.of(organizationId)).filter(({ isUsedUp }) => isUsedUp);
  if (usedUp.length === 0) return;
  const named = await reachOf(ctx, input);
  // A fork counts for the key that creates it, and not for that of the session that it continues.
  const of = named && name === 'forkSession' ? { ...named, keyId: ctx.keyId } : named;
  const [budget] = usedUp.filter((one) => of && isFor(one, of));
  if (!budget) return;
  throw new ApiError('budget_exceeded', `The budget "${budget.name}" of ${budget.limitUsd} USD is used up.`, {
    retryAfterSeconds: Math.max(1, Math.ceil((budget.endsAt.getTime() - ctx.clock.now().getTime()) / 1000)),
  });
}

/** Undefined if there is no such session. */
async function reachOf(ctx: Context, { sessionId, environment, agentId }: Readonly<Record<string, unknown>>) {
  if (typeof sessionId !== 'string') {
    // Drafts without an agent belong to the agent with the id of the organization.
    const uuid = agentId === undefined ? ctx.organizationId : uuidOf('agt', String(agentId));
    return { environment: String(environment), agentId: uuid, keyId: ctx.keyId };
  }
  const [row] = await ctx.db.query<Reach>(sql`
    select s.environment, s.agent_id as "agentId", s.key_id as "keyId" from sessions s
    where s.organization_id = ${ctx.organizationId} and s.session_id = ${uuidOf('ses', sessionId)}`);
  return row;
}

/** Whether a response may stay open without work: a stream or a long poll. */
export function mayWait(route: Route): boolean {
  const named = [route.query, route.body].flatMap((schema) =>
    Object.keys((schema as SchemaObject | undefined)?.properties ?? {}),
  );
  return route.stream !== undefined || named.includes('wait') || named.includes('waitSeconds');
}

function rateClassOf(route: Route): RateClass {
  if (route.method === 'GET') return 'reads';
  return route.path.startsWith('/api_keys') ? 'keys' : 'writes';
}

/** Both headers are lists. */
function addToHeader(reply: FastifyReply, name: string, item: string): void {
  const before = reply.getHeader(name);
  reply.header(name, before === undefined ? item : `${before}, ${item}`);
}

/** A hash of it. */
function credentialOf({ headers: { authorization, cookie } }: Caller): string {
  return hash('sha256', authorization ?? cookie ?? '', 'base64');
}

/** Hashes of credentials that were valid recently: never a reason to accept one, only to look it up. */
function createTrusted(clock: Clock) {
  const until = new Map<string, number>();
  return {
    has: (credential: string) => (until.get(credential) ?? 0) > clock.now().getTime(),
    add(credential: string): void {
      until.delete(credential);
      until.set(credential, clock.now().getTime() + TRUSTED_MS);
      const [oldest] = until.keys();
      if (until.size > MAX_TRUSTED && oldest !== undefined) until.delete(oldest);
    },
  };
}
