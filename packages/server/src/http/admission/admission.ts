// The requests that a node has in flight. Each has a slot in one of six pools and moves to the next as it progresses, so that unknown
// callers, and bodies that are still arriving, take no slot from the work of known callers:
//
//   identifying  until the database has returned the key or sign-in. A credential that was valid recently goes to `work` at once
//   half sent    calls by which people sign in, while their bodies arrive. None is refused: if there are too many, the oldest one is
//                ended, of the same address before others. An honest body arrives with its headers
//   strangers    the same calls once their bodies have arrived: few, and few for each address
//   uploads      files of known callers, from the first byte to the response: each has a piece in memory, and may take minutes
//   arriving     bodies of known callers that are still arriving
//   work         everything that is done for a known caller (SIGNALBOX_MAX_REQUESTS_IN_FLIGHT)
//
// One organization has at most nine tenths of the work and of the arriving bodies, and half of the uploads. Of its uploads, a key has half,
// and a session token, with others of the same reach, three.
//
// Streams and long polls have no slot; limits.ts counts them by caller.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Context } from '../../lib/context.ts';
import { createFairShare, type FairShare, type Release } from '../../lib/fair-share.ts';
import { networkOf } from '../../lib/network.ts';
import { closedSignal, onceClosed } from '../connection/closed.ts';
import { requestTimeout } from '../connection/server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    slot: Slot | undefined;
  }
}

/** The slot of one request, until its response is closed. A move to a full pool throws 503 `unavailable` or 429 `rate_limited`. */
export interface Slot {
  /** To look up the caller. `isTrusted`: the credential was valid recently. */
  identifyCaller(isTrusted: boolean): void;
  /** For a known caller; if the body has not arrived, in the pool of arriving bodies first. `organizationId`: a person may act in none. */
  work(callerId: string, organizationId?: string): void;
  /** For a known caller that sends a file: in the pool of uploads until its response is closed. `mebibytes`: what it has in memory. */
  upload(caller: Uploader, mebibytes: number): void;
  /** For a call that needs no sign-in. Its body has to arrive within `STRANGER_BODY_MS`. */
  serveStranger(ipAddress: string): void;
  /** Takes something else for the request, until its slot is released. The signal is aborted when the response is closed. */
  hold(take: (signal: AbortSignal) => Promise<Release | undefined>): Promise<void>;
  /** The body has arrived. */
  bodyArrived(): void;
  release(): void;
}

type Uploader = Pick<Context, 'organizationId' | 'callerId' | 'token'>;

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
/** For a page that is open in several tabs. */
const UPLOADS_OF_TOKEN = 3;
const PART_OF_ORGANIZATION = 0.9;

export interface AdmissionSettings {
  readonly maxRequestsInFlight: number;
  readonly maxUploads: number;
}

export function createAdmission({ maxRequestsInFlight, maxUploads }: AdmissionSettings, clock: Clock): Admission {
  const lookingUp = createPool(maxRequestsInFlight);
  const halfSent = createHalfSent(MAX_HALF_SENT, MAX_HALF_SENT_OF_ADDRESS);
  const strangers = createPool(MAX_STRANGERS, MAX_STRANGERS_OF_ADDRESS);
  const arriving = createPool(2 * maxRequestsInFlight, maxRequestsInFlight);
  const work = createPool(maxRequestsInFlight);
  const arrivingOf = createShares(Math.ceil(2 * maxRequestsInFlight * PART_OF_ORGANIZATION));
  const workOf = createShares(Math.ceil(maxRequestsInFlight * PART_OF_ORGANIZATION));
  const uploads = createUploads(maxUploads);

  return {
    of(request, reply) {
      let isOver = false;
      let leavePool = () => {};
      let leaveShare: Release | undefined;
      const held: Release[] = [];
      /** Whose share it counts in. */
      let owner = '';
      let pool: Pool | undefined;
      let address = '';
      let hasArrived: AbortController | undefined;
      const tooLate = () => requestTimeout(request.raw.socket);

      function moveTo(next: Pool | undefined, sharer = ''): void {
        // Its response is already closed, so nothing would ever release the slot.
        if (isOver || next === pool) return;
        const leave = next?.enter(sharer, tooLate) ?? (() => {});
        leavePool();
        [pool, leavePool] = [next, leave];
      }

      function joinShare(share: FairShare): void {
        if (isOver) return;
        const leave = enter(share, owner, 'The organization has its share of');
        leaveShare?.();
        leaveShare = leave;
      }

      function startWork(): void {
        joinShare(workOf);
        moveTo(work);
      }

      function release(): void {
        moveTo(undefined);
        leaveShare?.();
        leaveShare = undefined;
        for (const leave of held.splice(0)) leave();
      }

      const slot: Slot = {
        identifyCaller: (isTrusted) => moveTo(isTrusted ? work : lookingUp),
        work(callerId, organizationId) {
          owner = organizationId ?? callerId;
          if (request.raw.complete) startWork();
          else {
            joinShare(arrivingOf);
            moveTo(arriving, callerId);
          }
        },
        upload(caller, mebibytes) {
          if (isOver) return;
          leaveShare = uploads.enter(caller, mebibytes);
          moveTo(undefined);
        },
        serveStranger(ipAddress) {
          if (isOver) return;
          address = networkOf(ipAddress);
          moveTo(halfSent, address);
          hasArrived = new AbortController();
          clock.sleep(STRANGER_BODY_MS, hasArrived.signal).then(tooLate, () => {});
        },
        async hold(take) {
          const leave = await take(closedSignal(reply.raw));
          if (leave && isOver) leave();
          else if (leave) held.push(leave);
        },
        bodyArrived() {
          hasArrived?.abort(OVER);
          if (pool === halfSent) moveTo(strangers, address);
          if (pool === arriving) startWork();
        },
        release,
      };
      request.slot = slot;
      onceClosed(reply.raw, () => {
        release();
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
  const share = createFairShare({ max, maxOfOrganization: maxOfOne });
  return { enter: (who) => enter(share, who, 'You have your share of') };
}

/** So many for each, without a limit for all together. */
function createShares(maxOfEach: number): FairShare {
  return createFairShare({ max: Number.POSITIVE_INFINITY, maxOfOrganization: maxOfEach });
}

function createUploads(max: number) {
  const maxOfOrganization = Math.ceil(max / 2);
  const all = createFairShare({ max, maxOfOrganization });
  const keys = createShares(Math.ceil(maxOfOrganization / 2));
  const tokens = createShares(UPLOADS_OF_TOKEN);
  return {
    enter({ organizationId, callerId, token }: Uploader, mebibytes: number): Release {
      const leaveOwn = enter(token ? tokens : keys, callerId!, 'You have your share of', token ? 1 : mebibytes);
      try {
        const leaveAll = enter(all, organizationId, 'The organization has its share of', mebibytes);
        return () => {
          leaveOwn();
          leaveAll();
        };
      } catch (error) {
        leaveOwn();
        throw error;
      }
    },
  };
}

/** Throws 503 `unavailable` if the node is full, and 429 `rate_limited` if only this one is. */
function enter(share: FairShare, who: string, whose: string, amount = 1): Release {
  const release = share.tryTake(who, amount);
  if (release) return release;
  if (share.left < amount) {
    throw new ApiError('unavailable', 'This node is at its limit of requests in flight. Retry in a moment.', {
      retryAfterSeconds: 1,
    });
  }
  throw new ApiError('rate_limited', `${whose} the requests in flight on this node. Retry in a moment.`, {
    retryAfterSeconds: 1,
  });
}
