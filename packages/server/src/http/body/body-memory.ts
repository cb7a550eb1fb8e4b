// Bounds the memory that long bodies take, in two steps, and each waits for its turn: their bytes, from before they are read, and
// their values, from before they are parsed. Both are there until the response is closed, so hundreds of bodies that are read faster than
// they are worked off would use up the node's memory. Organizations take turns.
//
// A body that has its bytes waits only for bodies that are being worked off, never the other way round.
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { createFairShare, type Release } from '../../lib/fair-share.ts';
import { createMemoryShare, UNCOUNTED_BYTES } from '../../lib/memory.ts';
import { BODY_LIMIT_BYTES, hasBody } from './body.ts';
import type { SlowBodies } from './slow-bodies.ts';

export interface BodyMemory {
  /** Before the body of a known caller is read. Throws 429 `rate_limited` if a session token has its share. */
  beforeReading(request: FastifyRequest, ctx: Pick<Context, 'organizationId' | 'callerId' | 'token'>): Promise<void>;
  /** Before a body is parsed; undefined if there is nothing to wait for. */
  beforeParsing(request: FastifyRequest, body: Uint8Array): Promise<void> | undefined;
}

const MIB = 1024 * 1024;
/** For a page that is open in several tabs. */
const BODIES_OF_TOKEN = 3;
/** Measured: lists in lists and objects that all have other names take 50 for each name and value, most JSON 10. */
const BYTES_OF_VALUE = 50;
/** Copies of a text: decoded, and in what is written to the database. */
const COPIES = 2;

export function createBodyMemory(slowBodies: Pick<SlowBodies, 'watch' | 'arrived'>): BodyMemory {
  const bytes = createMemoryShare(128 * MIB, 1 / 8);
  const values = createMemoryShare(256 * MIB, 1 / 4);
  const tokens = createFairShare({ max: Number.POSITIVE_INFINITY, maxOfOrganization: BODIES_OF_TOKEN });

  return {
    async beforeReading(request, { organizationId, callerId, token }) {
      const { raw, slot } = request;
      const length = Math.min(Number(raw.headers['content-length'] ?? BODY_LIMIT_BYTES), BODY_LIMIT_BYTES);
      if (!slot || !hasBody(raw) || length <= UNCOUNTED_BYTES) return;
      if (token) await slot.hold(async () => shareOf(callerId!));
      // Its time to arrive begins when it may be sent.
      slowBodies.arrived(raw);
      await slot.hold((signal) => bytes.take(organizationId, length, signal));
      if (!raw.complete) slowBodies.watch(raw);
    },
    beforeParsing({ ctx, slot }, body) {
      if (body.length <= UNCOUNTED_BYTES || !ctx || !slot) return undefined;
      const size = COPIES * body.length + BYTES_OF_VALUE * countValues(body);
      return slot.hold((signal) => values.take(ctx.organizationId, size, signal));
    },
  };

  function shareOf(callerId: string): Release {
    const release = tokens.tryTake(callerId);
    if (release) return release;
    throw new ApiError(
      'rate_limited',
      'You have your share of the requests in flight on this node. Retry in a moment.',
      {
        retryAfterSeconds: 1,
      },
    );
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x7b];

/** The names and values of JSON, and some more. Takes less time than parsing it. */
export function countValues(bytes: Uint8Array): number {
  let count = 1;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE) count += 1;
    if (byte !== QUOTE) continue;
    for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === BACKSLASH) at += 1;
  }
  return count;
}
