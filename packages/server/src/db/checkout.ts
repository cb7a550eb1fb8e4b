// A connection that is checked out of the pool, and what its errors mean for the caller.
import { READ_ONLY } from './connection.ts';
import { isServerError, Pipeline, type PipelineOutcome, preparedOn, type Statement } from './pipeline.ts';
import type { PooledConnection } from './pool.ts';

/** No connection was available, or the one in use was lost. A retry may succeed; HTTP responds with 503. */
export class DatabaseUnavailable extends Error {
  /** The connection was lost during a commit, which may or may not have happened: read before repeating it. */
  readonly outcomeUnknown: boolean;

  constructor(cause: unknown, outcomeUnknown = false) {
    const { message, code } = cause as { message?: string; code?: string };
    super(`The database is not available: ${message || code || 'unknown reason'}`, { cause });
    this.name = 'DatabaseUnavailable';
    this.outcomeUnknown = outcomeUnknown;
  }
}

// A later retry may succeed, and nothing was committed: the database is read-only, or lacks disk, memory or connections.
const REFUSED = new Set([READ_ONLY, '53000', '53100', '53200', '53300']);

// Shutdown and start-up of the server, and a transaction that was idle for too long. After these, and those of class 08, the
// connection is lost and the outcome of a commit unknown.
const LOST = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', '25P03']);

// The internal error of a sharded database that lost a server in the middle of a transaction.
const LOST_SHARD = /marked as essential/;

/** A timeout, or a cancelled statement. */
export const CANCELLED = '57014';

// After these the connection is closed although it still works. 57014 (timeout or cancel) and 08006 (a shard was lost) can leave the
// inner connections of a cluster in an unknown state. 0A000 comes from a prepared statement whose table a migration changed, 26000
// and 42P05 from one that a pooler lost; each would recur on every use.
const DROP_AFTER = new Set([READ_ONLY, CANCELLED, '08006', '0A000', '26000', '42P05']);

// 1.5 times as many as have a name at a time (db.ts), so a connection is replaced only after 500 names were evicted.
const MAX_PREPARED_ON_CONNECTION = 1_500;

function isLost(error: unknown): boolean {
  if (!isServerError(error)) return false;
  const { code, message } = error;
  return LOST.has(code) || code.startsWith('08') || (code === 'XX000' && LOST_SHARD.test(message));
}

function isRefused(error: unknown): boolean {
  return isServerError(error) && REFUSED.has(error.code);
}

/** For a failed attempt to connect, for whatever reason: a password that was changed may be right again later. */
export function throwConnectError(error: unknown): never {
  throw new DatabaseUnavailable(error);
}

/**
 * The error that the caller gets for a failed pipeline. `mayHaveCommitted`: a commit had been sent, so its outcome is unknown if the
 * connection was lost.
 */
export function errorForCaller({ error, connectionLost }: PipelineOutcome, mayHaveCommitted: boolean): unknown {
  if (connectionLost || isLost(error)) return new DatabaseUnavailable(error, mayHaveCommitted);
  if (isRefused(error)) return new DatabaseUnavailable(error);
  // The error was created where the socket is read; its stack should lead to the caller instead.
  if (error) Error.captureStackTrace(error, errorForCaller);
  return error;
}

export class CheckedOutConnection {
  readonly #client: PooledConnection;
  #broken = false;

  constructor(client: PooledConnection) {
    this.#client = client;
    client.on('error', this.#breakage);
  }

  // The running pipeline gets the same error, but an 'error' event without a listener would end the process.
  readonly #breakage = (): void => {
    this.#broken = true;
  };

  /** Never rejects: a failure is an outcome. */
  async run(statements: readonly Statement[]): Promise<PipelineOutcome> {
    const { promise, resolve } = Promise.withResolvers<PipelineOutcome>();
    this.#client.query(new Pipeline(statements, resolve));
    const outcome = await promise;
    const { error, connectionLost } = outcome;
    const code = isServerError(error) ? error.code : undefined;
    if (connectionLost || isLost(error) || (code && DROP_AFTER.has(code))) this.#broken = true;
    if (code === READ_ONLY) this.#client.becameReadOnly();
    return outcome;
  }

  /** Returns the connection to the pool, or closes it if it failed or is still in a transaction. */
  release(): void {
    this.#client.removeListener('error', this.#breakage);
    const status = this.#client.getTransactionStatus();
    this.#broken ||= preparedOn(this.#client.connection) >= MAX_PREPARED_ON_CONNECTION;
    this.#client.release(this.#broken || (status !== null && status !== 'I'));
  }
}
