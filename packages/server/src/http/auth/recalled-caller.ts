// A caller whose key this node remembers. Before a change that is planned (handlers.ts) the key is not looked up: the transaction of the
// change checks it, which saves a round trip. A key that was rotated, deleted, restricted or has expired is still refused at once:
//
//   - The transaction commits only if the database finds the key valid, and unchanged in everything that the request relied on.
//   - Without a commit, the caller learns nothing before the key has been looked up. If there is no plan, it does not apply, or the request
//     is refused, it starts again with the look-up (api.ts). A body that can't be read, or a failed commit, is reported after it (app.ts).
//   - Until then nothing is recorded about the caller, and the body is not waited for. Requests that are counted are looked up first.
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import type { Sql } from 'sql-template-tag';
import type { PoolContext } from '../../lib/context.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Until the key has been checked or looked up. */
    recalled: (RecalledCaller & { lookUp(): Promise<void> }) | undefined;
  }
}

export interface RecalledCaller {
  /** If the key is still as it is remembered. */
  readonly ctx: PoolContext;
  /** Finds a row if it is, and valid. */
  readonly check: Sql;
  /** Call it when the check has found one. */
  confirm(): void;
  /** Call it if not. */
  forget(): void;
}

/** Whether the whole body is here. One that is sent with its headers arrives in the same turn of the event loop. */
export async function hasArrived(message: IncomingMessage): Promise<boolean> {
  if (!message.complete) await setImmediate();
  return message.complete;
}

/** Looks the key up unless it has been checked. Throws as if that had been the first step of the request. */
export async function identify(request: FastifyRequest): Promise<void> {
  const { recalled } = request;
  if (!recalled) return;
  recalled.forget();
  request.recalled = undefined;
  request.ctx = undefined;
  await recalled.lookUp();
}
