// The requests that a node has under way. Each has a place in one of four pools, and moves on as it gets further, so that nobody
// who is not known, and no body that is still on its way, takes a place from the work of those who are known:
//
//   looking up   until the database has said whose key or cookie it is. A credential that was good lately looks up at work
//   half sent    calls by which people sign in, while their bodies are on their way. Nobody is refused for them: if there are
//                too many, the oldest is ended, of this address before others. An honest body comes with its headers
//   strangers    the same calls once they are whole: few, and few of one address
//   arriving     bodies of known callers that are still on their way
//   work         all that is done for a known caller (SIGNALBOX_MAX_REQUESTS_IN_FLIGHT)
//
// Streams and long polls have no place; limits.ts counts them by caller.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import { networkOf } from '../../lib/network.ts';
import { onceClosed } from './closed.ts';
import { requestTimeout } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    slot: Slot | undefined;
  }
}

/** Of one request, until its response is closed. What moves it throws 503 `unavailable` or 429 `rate_limited` where there is no room. */
export interface Slot {
  /** For the question who calls. `isTrusted`: the credential was good lately. */
  identifyCaller(isTrusted: boolean): void;
  /** For a caller that is known: first for the body, if it is not here yet. */
  work(callerId: string): void;
  /** For a call that anybody may make. Its body has `STRANGER_BODY_MS`. */
  serveStranger(ipAddress: string): void;
  /** The body is here. */
  bodyArrived(): void;
  release(): void;
}

export interface Admission {
  of(request: FastifyRequest, reply: FastifyReply): Slot;
}

/** Of the body of a call that anybody may make. */
export const STRANGER_BODY_BYTES = 16 * 1024;
const STRANGER_BODY_MS = 5_000;
const MAX_HALF_SENT = 100;
const MAX_HALF_SENT_OF_ADDRESS = 20;
const MAX_STRANGERS = 100;
const MAX_STRANGERS_OF_ADDRESS = 20;

export function createAdmission(maxRequestsInFlight: number, clock: Clock): Admission {
  const lookingUp = createPool(maxRequestsInFlight);
  const halfSent = createHalfSent(MAX_HALF_SENT, MAX_HALF_SENT_OF_ADDRESS);
  const strangers = createPool(MAX_STRANGERS, MAX_STRANGERS_OF_ADDRESS);
  const arriving = createPool(2 * maxRequestsInFlight, maxRequestsInFlight);
  const work = createPool(maxRequestsInFlight);

  return {
    of(request, reply) {
      let isOver = false;
      let leavePool = () => {};
      let pool: Pool | undefined;
      let address = '';
      let hasArrived: AbortController | undefined;
      const tooLate = () => requestTimeout(request.raw.socket);

      function moveTo(next: Pool | undefined, who = ''): void {
        // Its response was closed already, and nothing would ever take it out again.
        if (isOver || next === pool) return;
        const leave = next?.enter(who, tooLate) ?? (() => {});
        leavePool();
        [pool, leavePool] = [next, leave];
      }

      const slot: Slot = {
        identifyCaller: (isTrusted) => moveTo(isTrusted ? work : lookingUp),
        work: (callerId) => (request.raw.complete ? moveTo(work) : moveTo(arriving, callerId)),
        serveStranger(ipAddress) {
          if (isOver) return;
          address = networkOf(ipAddress);
          moveTo(halfSent, address);
          hasArrived = new AbortController();
          clock.sleep(STRANGER_BODY_MS, hasArrived.signal).then(tooLate, () => {});
        },
        bodyArrived() {
          hasArrived?.abort();
          if (pool === halfSent) moveTo(strangers, address);
          if (pool === arriving) moveTo(work);
        },
        release: () => moveTo(undefined),
      };
      request.slot = slot;
      onceClosed(reply.raw, () => {
        moveTo(undefined);
        isOver = true;
        hasArrived?.abort();
      });
      return slot;
    },
  };
}

interface Pool {
  /** Returns how to leave, to be called once. `end` ends the request, if it is to make room. */
  enter(who: string, end: () => void): () => void;
}

/** Whoever comes has room. */
function createHalfSent(max: number, maxOfOne: number): Pool {
  /** The oldest is first. */
  const entries = new Set<{ who: string; end: () => void }>();
  return {
    enter(who, end) {
      const own = [...entries].filter((entry) => entry.who === who);
      const [oldest] = own.length >= maxOfOne ? own : entries.size >= max ? entries : [];
      if (oldest) {
        entries.delete(oldest);
        oldest.end();
      }
      const entry = { who, end };
      entries.add(entry);
      return () => void entries.delete(entry);
    },
  };
}

function createPool(max: number, maxOfOne = max): Pool {
  const countOf = new Map<string, number>();
  let count = 0;
  return {
    enter(who) {
      if (count >= max) {
        throw new ApiError('unavailable', 'This node is at its limit of requests in flight. Retry in a moment.', {
          retryAfterSeconds: 1,
        });
      }
      const own = countOf.get(who) ?? 0;
      if (own >= maxOfOne) {
        throw new ApiError('rate_limited', `You have ${own} requests in flight, which is the limit.`, {
          retryAfterSeconds: 1,
        });
      }
      count += 1;
      countOf.set(who, own + 1);
      return () => {
        count -= 1;
        const left = countOf.get(who)! - 1;
        if (left === 0) countOf.delete(who);
        else countOf.set(who, left);
      };
    },
  };
}
