// The database as the rest of the service uses it: statements, transactions, and one error for "not available".
//
// A statement is a tagged template. `query` returns its rows, `execute` the number of rows that it affected. A statement outside a
// transaction is a transaction of its own: when the promise resolves, the commit is durable.
//
// A transaction is one connection and a queue. `begin` is sent together with the first statement, and statements issued together
// (`Promise.all`) are sent together, so each await costs a round trip, not each statement (see pipeline.ts). A statement passed to
// `write` is not awaited; it is sent with the next one. A transaction with one insert takes 2 round trips instead of 3, and 1 with
// `write` or `batch`. Over a unix socket without waiting for the disk that is 0.20 ms, 0.13 ms and 0.08 ms. With a fast disk only the
// last is clearly faster; over a network every round trip counts.
import { hash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { Client } from 'pg';
import type { Sql } from 'sql-template-tag';
import { type Clock, systemClock } from '../lib/clock.ts';
import { CheckedOutConnection, errorForCaller, throwConnectError } from './checkout.ts';
import { Connections } from './connections.ts';
import { GroupCommit } from './group-commit.ts';
import { handled } from './handled.ts';
import { createInsertMerger } from './merge-inserts.ts';
import { type PipelineOutcome, rowCount, type Statement, type StatementResult, statement } from './pipeline.ts';
import { isRefusal, type PoolLog } from './pool.ts';
import { Transaction } from './transaction.ts';

export { CANCELLED, DatabaseUnavailable } from './checkout.ts';

export interface Queryable {
  /** The rows. */
  query<Row>(sql: Sql): Promise<Row[]>;
  /** The number of rows inserted, updated, deleted or selected. */
  execute(sql: Sql): Promise<number>;
}

/** An open transaction. It ends when the function passed to `transaction` does; later statements throw. */
export interface Tx extends Queryable {
  /** Sent with the next awaited statement or with COMMIT, which fails if this statement does. */
  write(sql: Sql): void;
  /** Runs after COMMIT is acknowledged, in the order of the calls; never after a rollback. It must not throw. */
  afterCommit(fn: () => void): void;
  /** If `fn` throws, rolls back only its changes and rethrows the error. */
  savepoint<T>(fn: () => Promise<T>): Promise<T>;
}

export interface Db extends Queryable {
  /** Commits when `fn` resolves, rolls back when it throws. */
  transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T>;
  /** All or none of the statements, in one transaction and one round trip: the rows of each. */
  batch<Row>(statements: readonly Sql[], options?: BatchOptions): Promise<Row[][]>;
  /** The database for the work of one organization: it takes turns with others if they wait for connections. */
  of(organizationId: string): Db;
  /** A connection outside the pool, for LISTEN. The caller handles its 'error' and 'end' and ends it. */
  connect(): Promise<Client>;
  /** Throws unless a new connection reaches a writable database within 3 s. Checks at most twice a second. */
  check(): Promise<void>;
  /** The current number of connections, how many of them are idle, and how many callers wait for one. */
  pool(): { total: number; idle: number; awaited: number };
  /** Waits for running statements, then closes every connection. */
  close(): Promise<void>;
}

export interface BatchOptions {
  /** The transaction may be shared with others of the same group, which is cheaper; none of them may depend on another. */
  group?: number | undefined;
  /** Fails with `lock_not_available` after 20 ms, instead of waiting for a lock. */
  limitsLocks?: boolean;
}

export interface DbOptions {
  /** `postgres://…`; never logged. */
  url: string;
  /** The most connections the pool opens. */
  max?: number;
  log?: PoolLog;
  /** How long the server may work on a statement; 0 is no limit. Undefined leaves it to the settings of the server. */
  statementTimeoutMs?: number;
  /** How long a transaction may wait for its next statement; then the server ends its connection. */
  idleInTransactionMs?: number;
  /** Whether a transaction pooler is in between. It may use another server connection for each transaction, so nothing is prepared. */
  isPooled?: boolean;
  /** Measures how long the server is silent. */
  clock?: Clock;
}

const DEFAULT_MAX_CONNECTIONS = 20;

// How long the result of a check is reused.
const CHECK_KEPT_MS = 500;

// The service has a few hundred statements, and lists whose filters clients can combine in thousands of ways. The most recently used are
// prepared, so no client can evict the frequent ones.
const MAX_PREPARED_STATEMENTS = 1_000;

const LIMIT_LOCKS = `set local lock_timeout = '20ms'`;

// Publishes the text of every statement, never its values: for tests and tracing.
const statements = channel('signalbox.statement');

export function createDb(options: DbOptions): Db {
  const { log, max = DEFAULT_MAX_CONNECTIONS, isPooled = false, clock = systemClock } = options;
  const connections = new Connections(options);
  const pool = connections.pool(max, log);

  // Names that are used move to the recent half. When that is full it becomes the older half, and names that were not used since the
  // last time are forgotten.
  let recent = new Map<string, string>();
  let older = new Map<string, string>();

  function nameOf(text: string): string | undefined {
    if (isPooled) return undefined;
    const known = recent.get(text);
    if (known !== undefined) return known;
    const name = older.get(text) ?? `s_${hash('sha256', text, 'hex').slice(0, 24)}`;
    if (recent.size >= MAX_PREPARED_STATEMENTS / 2) {
      older = recent;
      recent = new Map();
    }
    recent.set(text, name);
    return name;
  }

  function toStatement(sql: Sql): Statement {
    const text = sql.text;
    if (statements.hasSubscribers) statements.publish(text);
    return statement(text, sql.values, nameOf(text));
  }

  const command = (text: string): Statement => statement(text, [], nameOf(text));

  async function withConnection<T>(
    who: string | undefined,
    use: (connection: CheckedOutConnection) => Promise<T>,
  ): Promise<T> {
    const connection = new CheckedOutConnection(await pool.connect(who).catch(throwConnectError));
    try {
      return await use(connection);
    } finally {
      connection.release();
    }
  }

  async function runAlone(who: string | undefined, sql: Sql): Promise<StatementResult> {
    const single = toStatement(sql);
    return withConnection(who, async (connection) => {
      const outcome = await connection.run([single]);
      // Outside a transaction the server commits at the Sync, so a lost connection leaves the outcome open.
      if (outcome.error) throw errorForCaller(outcome, true);
      return outcome.results[0] as StatementResult;
    });
  }

  /** In one transaction. */
  function runTogether(statements: readonly Statement[]): Promise<PipelineOutcome> {
    return withConnection(undefined, async (connection) => {
      const outcome = await connection.run([command('begin'), ...statements, command('commit')]);
      if (outcome.error) await connection.run([command('rollback')]);
      return { ...outcome, results: outcome.results.slice(1, 1 + statements.length) };
    });
  }

  const groups = new GroupCommit(runTogether, createInsertMerger(nameOf), command(LIMIT_LOCKS));

  async function runBatch<Row>(
    statements: readonly Sql[],
    { group, limitsLocks = false }: BatchOptions,
  ): Promise<Row[][]> {
    if (statements.length === 0) return [];
    const change = { statements: statements.map(toStatement), limitsLocks };
    const outcome = await (group === undefined ? groups.commitAlone(change) : groups.commit(group, change));
    if (outcome.error) throw errorForCaller(outcome, true);
    return outcome.results.map((result) => result.rows as Row[]);
  }

  let checking: Promise<void> | undefined;

  async function check(): Promise<void> {
    try {
      await connections.check().catch((error) => {
        // A server that refuses a further connection still serves the ones that this node has.
        if (!isRefusal(error) || pool.openCount === 0) throwConnectError(error);
      });
    } finally {
      void clock.sleep(CHECK_KEPT_MS).then(() => {
        checking = undefined;
      });
    }
  }

  const dbOf = (who?: string): Db => ({
    query: <Row>(sql: Sql) => handled(runAlone(who, sql).then(({ rows }) => rows as Row[])),

    execute: (sql) => handled(runAlone(who, sql).then(rowCount)),

    transaction: (fn) =>
      handled(withConnection(who, (connection) => new Transaction(connection, toStatement, command, log).run(fn))),

    batch: <Row>(statements: readonly Sql[], options: BatchOptions = {}) => handled(runBatch<Row>(statements, options)),

    of: dbOf,

    connect: () => connections.direct().catch(throwConnectError),

    check() {
      checking ??= check();
      return checking;
    },

    pool: () => ({ total: pool.totalCount, idle: pool.idleCount, awaited: pool.waitingCount }),

    close: () => pool.end(),
  });
  return dbOf();
}
