// A pooled connection while it is in use, and what its failures mean.
import type { PoolClient } from 'pg';
import { type Connection, READ_ONLY } from './connection.ts';
import { isServerError, Pipeline, type PipelineOutcome, preparedOn, type Statement } from './pipeline.ts';

/** No connection could be had, or the one in use was lost. Worth trying again; http answers 503. */
export class DatabaseUnavailable extends Error {
  /** The connection broke where a commit may have been done or not: read again before repeating. */
  readonly outcomeUnknown: boolean;

  constructor(cause: unknown, outcomeUnknown = false) {
    const { message, code } = cause as { message?: string; code?: string };
    super(`The database is not available: ${message || code || 'unknown reason'}`, { cause });
    this.name = 'DatabaseUnavailable';
    this.outcomeUnknown = outcomeUnknown;
  }
}

// Worth trying again later, and it is certain that nothing was committed: the database is read-only, or lacks disk, memory or
// connections.
const REFUSED = new Set([READ_ONLY, '53000', '53100', '53200', '53300']);

// Shutdowns and start-ups of the server, and a transaction that stood still for too long. With class 08, all after which the
// connection, and with it what became of a commit, is lost.
const LOST = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', '25P03']);

// A sharded database says so, as an internal error, when it has lost a node in the middle of a transaction.
const LOST_SHARD = /marked as essential/;

/** A time-out, or a cancel. */
export const CANCELLED = '57014';

// After these the connection is dropped, though it still answers. 57014 (time-out or cancel) and 08006 (a shard was lost)
// can leave a cluster's inner connections in doubt; 0A000 comes from a prepared statement whose table a migration
// changed, 26000 and 42P05 from one that a pooler mislaid, and would come again on every use.
const DROP_AFTER = new Set([READ_ONLY, CANCELLED, '08006', '0A000', '26000', '42P05']);

// Half as many again as have a name at a time (db.ts): so many texts have to come and go before a connection is replaced.
const MAX_PREPARED_ON_CONNECTION = 1_500;

function isLost(error: unknown): boolean {
  if (!isServerError(error)) return false;
  const { code, message } = error;
  return LOST.has(code) || code.startsWith('08') || (code === 'XX000' && LOST_SHARD.test(message));
}

function isRefused(error: unknown): boolean {
  return isServerError(error) && REFUSED.has(error.code);
}

/** For a failed attempt to connect: a wrong password or database name stays what it is, all else is unavailability. */
export function throwConnectError(error: unknown): never {
  throw isServerError(error) && !isLost(error) && !isRefused(error) ? error : new DatabaseUnavailable(error);
}

/**
 * What the caller gets for a failed pipeline. `mayHaveCommitted`: a commit was on its way, so that with the connection
 * the knowledge of its outcome is lost.
 */
export function errorForCaller({ error, connectionLost }: PipelineOutcome, mayHaveCommitted: boolean): unknown {
  if (connectionLost || isLost(error)) return new DatabaseUnavailable(error, mayHaveCommitted);
  if (isRefused(error)) return new DatabaseUnavailable(error);
  // The error was made where the socket is read; its stack should lead to who asked.
  if (error) Error.captureStackTrace(error, errorForCaller);
  return error;
}

export class CheckedOutConnection {
  readonly #client: PoolClient & Connection;
  #broken = false;

  constructor(client: PoolClient & Connection) {
    this.#client = client;
    client.on('error', this.#breakage);
  }

  // The running pipeline gets the same error; but an 'error' event that nobody hears would end the process.
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

  /** Back to the pool, or out of it when it broke or is still inside a transaction. */
  release(): void {
    this.#client.removeListener('error', this.#breakage);
    const status = this.#client.getTransactionStatus();
    this.#broken ||= preparedOn(this.#client.connection) >= MAX_PREPARED_ON_CONNECTION;
    this.#client.release(this.#broken || (status !== null && status !== 'I'));
  }
}
