// Limits against abuse, in the order in which a request meets them. Each holds for this node.
//
//   requests under way       503 before anything is read or asked (admission.ts): what waits for the database waits in memory
//   failed authentication    429 for an address that was refused too often in a minute. A credential that was good lately
//                            goes on (it is still asked of the database each time), so that whoever shares an address,
//                            or a proxy that nobody named, is not locked out by another
//   signing in               429 for an address or an e-mail by which it was tried too often in a minute
//   requests of a caller     429 by reads, writes and key management, where the operator says how many a minute
//   streams of a caller      429: what stays open (streams, long polls) counts here instead of as under way
//   open Sessions            429 for an organization that has as many as it may (asked of the database)
//
// What may be done at all takes turns on the event loop (loop-queue.ts), so that what is costly holds up its own sender first.
// What the parser itself refuses (headers, slow requests) stands in server.ts.
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Route, SchemaObject } from '@signalbox/contract';
import type { FastifyReply } from 'fastify';
import sql from 'sql-template-tag';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Context, PoolContext } from '../../lib/context.ts';
import { networkOf } from '../../lib/network.ts';
import type { RateClass, RateLimits } from '../../lib/rate-limits.ts';
import type { Caller } from './auth.ts';
import { onceClosed } from './closed.ts';
import { createWindows, WINDOW_SECONDS } from './windows.ts';

/** 0 is no limit, except for `maxRequestsInFlight` and `maxUnreadMegabytes` (admission.ts, unread-bound.ts). */
export interface LimitSettings {
  readonly rateLimits: RateLimits;
  readonly authFailuresPerMinute: number;
  readonly maxRequestsInFlight: number;
  readonly maxStreamsPerKey: number;
  /** Of answers and streams that wait for their readers, all together. */
  readonly maxUnreadMegabytes: number;
  readonly maxOpenSessions: number;
}

export interface Limits {
  /** Whether the caller's credential was good lately. */
  isTrusted(caller: Caller): boolean;
  /** Runs `authenticate`, unless the address was refused too often; throws 429 `rate_limited` then. */
  throttle(caller: Caller, authenticate: () => Promise<PoolContext>): Promise<PoolContext>;
  /**
   * Runs `attempt` to sign in, which resolves to undefined where it was refused and throws where it could not be made; the
   * refused alone count. Without an e-mail it is counted by its address alone:
   * nobody guesses a passkey, and all who have one would share what anybody can use up. Throws 429 `rate_limited`.
   */
  signIn<T>(
    ipAddress: string,
    email: string | undefined,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined>;
  /** Counts what anybody may begin, and what costs a row that is kept for minutes. Throws 429 `rate_limited`. */
  startSignIn(ipAddress: string): void;
  /** Counts the request and says so in the answer's headers. Throws 429 `rate_limited`. */
  countRequest(ctx: Context, route: Route, reply: FastifyReply): void;
  /** Counts what stays open until the response is closed. Throws 429 `rate_limited`. */
  countStream(ctx: Context, response: ServerResponse): void;
}

// From one address somebody tries passwords they may have mistaken. From many addresses it is an attack, and a limit on all of
// them together also keeps the owner out; a long password is what resists, and this only makes it slow.
const SIGN_INS_OF_ADDRESS_AND_EMAIL = 10;
const SIGN_INS_OF_EMAIL = 100;
// Of an office behind one address; a person begins one or two.
const BEGINNINGS_OF_ADDRESS = 120;

/** How long a credential that was good is let past the throttle of its address. */
const TRUSTED_MS = 3600_000;
const MAX_TRUSTED = 10_000;

export function createLimits(settings: LimitSettings, clock: Clock): Limits {
  const { rateLimits, authFailuresPerMinute, maxStreamsPerKey } = settings;
  const requests = createWindows(clock);
  const failures = createWindows(clock);
  const signIns = createWindows(clock);
  const trusted = createTrusted(clock);
  const streams = new Map<string, number>();

  return {
    isTrusted: (caller) => trusted.has(credentialOf(caller)),

    async throttle(caller, authenticate) {
      if (authFailuresPerMinute === 0) return authenticate();
      const credential = credentialOf(caller);
      const network = networkOf(caller.ipAddress);
      const { used, resetSeconds } = failures.peek(network);
      if (used >= authFailuresPerMinute && !trusted.has(credential)) {
        throw new ApiError('rate_limited', 'Too many requests from your address were refused. Retry later.', {
          retryAfterSeconds: resetSeconds,
        });
      }
      try {
        const ctx = await authenticate();
        trusted.add(credential);
        return ctx;
      } catch (error) {
        // Who sends no key at all guesses none, and costs no question to the database. A sign-in that has ended was good
        // once, or its signature is wrong, which costs none either.
        const isGuess = error instanceof ApiError && error.status === 401;
        if (isGuess && error.code !== 'missing_token' && error.code !== 'signed_out') failures.add(network);
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
      // Counted before it is tried, or many at once would all pass.
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
        // An attempt that came to no answer is no guess.
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

    countRequest(ctx, route, reply) {
      const rateClass = rateClassOf(route);
      const limit = rateLimits[rateClass];
      if (!limit) return;
      const { used, resetSeconds } = requests.add(`${rateClass} ${ctx.callerId}`);
      reply.header('RateLimit-Policy', `"${rateClass}";q=${limit};w=${WINDOW_SECONDS}`);
      reply.header('RateLimit', `"${rateClass}";r=${Math.max(0, limit - used)};t=${resetSeconds}`);
      if (used > limit) {
        throw new ApiError('rate_limited', `The limit is ${limit} requests of this kind (${rateClass}) per minute.`, {
          retryAfterSeconds: resetSeconds,
        });
      }
    },

    countStream(ctx, response) {
      const id = ctx.callerId;
      if (maxStreamsPerKey === 0 || id === null) return;
      const others = streams.get(id) ?? 0;
      if (others >= maxStreamsPerKey) {
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
 * Throws 429 where the organization has as many open Sessions as it may. Those that open at the same moment may all pass: a row
 * that each of them locks, and each end of a Session too, would be in the way of all.
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

/** Whether an answer may take long although nothing is done for it. */
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

/** A hash of it. */
function credentialOf({ headers: { authorization, cookie } }: Caller): string {
  return createHash('sha256')
    .update(authorization ?? cookie ?? '')
    .digest('base64');
}

/** Hashes of credentials that were good lately: never a reason to let one in, only to ask the database about it. */
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
