// The requests that a node has in flight. Each has a slot in one of six pools and moves to the next as it progresses, so that unknown
// callers, and bodies that are still arriving, take no slot from the work of known callers:
//
//   identifying  until the database has returned the key or sign-in. A credential that was valid recently goes to `work` at once
//   half sent    calls by which people sign in, while their bodies arrive. None is refused: if there are too many, the oldest one is
//                ended, of the same address before others. An honest body arrives with its headers
//   strangers    the same calls once their bodies have arrived: few, and few for each address
//   uploads      files of known callers, from the first byte to the response: each has about 1 MiB in memory, and may take minutes
//   arriving     bodies of known callers that are still arriving
//   work         everything that is done for a known caller (SIGNALBOX_MAX_REQUESTS_IN_FLIGHT)
//
// Streams and long polls have no slot; limits.ts counts them by caller.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OVER } from '../../lib/aborted.ts';
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

/** The slot of one request, until its response is closed. A move to a full pool throws 503 `unavailable` or 429 `rate_limited`. */
export interface Slot {
  /** To look up the caller. `isTrusted`: the credential was valid recently. */
  identifyCaller(isTrusted: boolean): void;
  /** For a known caller; if the body has not arrived, in the pool of arriving bodies first. */
  work(callerId: string): void;
  /** For a known caller that sends a file: in the pool of uploads until its response is closed. */
  upload(callerId: string): void;
  /** For a call that needs no sign-in. Its body has to arrive within `STRANGER_BODY_MS`. */
  serveStranger(ipAddress: string): void;
  /** The body has arrived. */
  bodyArrived(): void;
  release(): void;
}

export interface Admission {
  of(request: FastifyRequest, reply: FastifyReply): Slot;
}

/** The limit of the body of a call that needs no sign-in. */
export const STRANGER_BODY_BYTES = 16 * 1024;
const STRANGER_BODY_MS = 5_000;
const MAX_HALF_SENT = 100;
const MAX_HALF_SENT_OF_ADDRESS = 20;
const MAX_STRANGERS = 100;
const MAX_STRANGERS_OF_ADDRESS = 20;

export interface AdmissionSettings {
  readonly maxRequestsInFlight: number;
  readonly maxUploads: number;
}

export function createAdmission({ maxRequestsInFlight, maxUploads }: AdmissionSettings, clock: Clock): Admission {
  const lookingUp = createPool(maxRequestsInFlight);
  const halfSent = createHalfSent(MAX_HALF_SENT, MAX_HALF_SENT_OF_ADDRESS);
  const strangers = createPool(MAX_STRANGERS, MAX_STRANGERS_OF_ADDRESS);
  const arriving = createPool(2 * maxRequestsInFlight, maxRequestsInFlight);
  const uploads = createPool(maxUploads, Math.ceil(maxUploads / 2));
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
        // Its response is already closed, so nothing would ever release the slot.
        if (isOver || next === pool) return;
        const leave = next?.enter(who, tooLate) ?? (() => {});
        leavePool();
        [pool, leavePool] = [next, leave];
      }

      const slot: Slot = {
        identifyCaller: (isTrusted) => moveTo(isTrusted ? work : lookingUp),
        work: (callerId) => (request.raw.complete ? moveTo(work) : moveTo(arriving, callerId)),
        upload: (callerId) => moveTo(uploads, callerId),
        serveStranger(ipAddress) {
          if (isOver) return;
          address = networkOf(ipAddress);
          moveTo(halfSent, address);
          hasArrived = new AbortController();
          clock.sleep(STRANGER_BODY_MS, hasArrived.signal).then(tooLate, () => {});
        },
        bodyArrived() {
          hasArrived?.abort(OVER);
          if (pool === halfSent) moveTo(strangers, address);
          if (pool === arriving) moveTo(work);
        },
        release: () => moveTo(undefined),
      };
      request.slot = slot;
      onceClosed(reply.raw, () => {
        moveTo(undefined);
        isOver = true;
        hasArrived?.abort(OVER);
      });
      return slot;
    },
  };
}

interface Pool {
  /** Returns a function that leaves the pool, to be called once. `end` ends the request if its slot is needed. */
  enter(who: string, end: () => void): () => void;
}

/** Never full: the oldest entry makes room. */
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
