// A request that does for each of several ids what another route does for one. Each id passes the steps of that route by itself: what the
// key reaches, rate limits, checks, and the transaction with its idempotency record. So each is decided as it would be alone, and one that
// is refused, or waits for a lock, does not undo or delay the others.
import type { Route, RouteName } from '@signalbox/contract';
import type { FastifyReply } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import type { Context, PoolContext } from '../../lib/context.ts';
import type { Limits } from '../admission/limits.ts';
import { actOnce, keyOfPart } from './idempotency.ts';

type Input = Record<string, unknown>;

/** What a route does with an input that is valid. */
export interface Steps {
  readonly name: RouteName;
  readonly route: Route;
  /** Throws 403 for what a limited key can't reach. */
  enterReach(ctx: PoolContext, input: Input): Promise<Input>;
  /** Throws 400 and 403 for what takes long to judge. */
  check(ctx: PoolContext, input: Input): Promise<void>;
  act(ctx: Context, input: Input): Promise<unknown>;
}

/** Why one of the ids was refused. */
export type EachError = { status: number; code: ApiError['code']; detail: string };
/** What the response says about an id: `value` is the response of the other route, null if it was refused. */
export type EachResult = (id: string, value: unknown, error: EachError | null) => unknown;

/** One request of many. */
export interface EachRequest {
  readonly ctx: PoolContext;
  readonly reply: FastifyReply;
  readonly input: Input;
  readonly idempotencyKey: string | undefined;
  readonly credential: string;
}

// At most this many of the pool's 20 connections.
const MAX_CONCURRENT = 4;

// These concern the whole request. A client that repeats it with its Idempotency-Key continues.
const ofWholeRequest = new Set(['idempotency_in_progress', 'idempotency_conflict', 'unavailable']);

export function eachOf(each: NonNullable<Route['each']>, steps: Steps, limits: Limits, resultOf: EachResult) {
  const { route } = steps;

  async function actOn(id: string, { ctx, input, idempotencyKey, credential }: EachRequest): Promise<unknown> {
    const { [each.ids]: _, ...rest } = input;
    const one = await steps.enterReach(ctx, { ...rest, [each.id]: id });
    await steps.check(ctx, one);
    if (idempotencyKey === undefined) return steps.act(ctx, one);
    const key = keyOfPart(idempotencyKey, id);
    const request = { key, method: route.method, path: route.path, body: one, rawBody: undefined, credential };
    const { status, body } = await actOnce(ctx, route, request, (inner) => steps.act(inner, one));
    const value = JSON.parse(body);
    if (status >= 400) throw new ApiError(value.code, value.detail);
    return value;
  }

  async function resultFor(id: string, isFirst: boolean, request: EachRequest): Promise<unknown> {
    const { ctx, reply } = request;
    try {
      // The first was counted before the body was read.
      if (!isFirst) {
        limits.countRequest(ctx, route, reply);
        await limits.countRequestOfKey(ctx, reply);
      }
      return resultOf(id, await actOn(id, request), null);
    } catch (error) {
      if (!(error instanceof ApiError) || ofWholeRequest.has(error.code)) throw error;
      return resultOf(id, null, { status: error.status, code: error.code, detail: error.message });
    }
  }

  /** Fails if one of them could not be judged at all; the others that were under way are finished first. */
  return async (request: EachRequest): Promise<{ results: unknown[] }> => {
    const ids = request.input[each.ids] as string[];
    const results: unknown[] = [];
    let next = 0;
    let hasFailed = false;
    async function work(): Promise<void> {
      while (next < ids.length && !hasFailed) {
        const at = next++;
        try {
          results[at] = await resultFor(ids[at]!, at === 0, request);
        } catch (error) {
          hasFailed = true;
          throw error;
        }
      }
    }
    const workers = await Promise.allSettled(Array.from({ length: MAX_CONCURRENT }, work));
    for (const worker of workers) if (worker.status === 'rejected') throw worker.reason;
    return { results };
  };
}
