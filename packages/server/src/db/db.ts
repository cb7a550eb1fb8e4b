// The database as the rest of the service sees it: statements, transactions, and one way to say "not available".
//
// A statement is a tagged template. `query` gives its rows and `execute` the number of rows it touched. Outside a
// transaction each is its own; when the promise resolves, the commit is durable.
//
// A transaction is one connection and a queue. `begin` waits in the queue for the first statement and goes out with
// it, and statements issued together (`Promise.all`) travel together: a round trip is paid for each answer awaited,
// not for each statement (see pipeline.ts). What is given to `write` is awaited by nobody, and travels with what comes
// next. A transaction of one insert takes 2 round trips instead of 3, and 1 by `write`, or by `batch`, which knows all its
// statements. Over a unix socket, without the wait for the disk: 0.20 ms, 0.13 ms, 0.08 ms. With that wait, on a fast disk,
// only the last is clearly ahead; over a network each round trip counts.
import { hash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { Client } from 'pg';
import type { Sql } from 'sql-template-tag';
import { type Clock, systemClock } from '../lib/clock.ts';
import { CheckedOutConnection, errorForCaller, throwConnectError } from './checkout.ts';
import { Connections, hasTooManyConnections } from './connections.ts';
import { rowCount, type Statement, type StatementResult, statement } from './pipeline.ts';
import { Transaction } from './transaction.ts';

export { CANCELLED, DatabaseUnavailable } from './checkout.ts';

export interface Queryable {
  /** The rows. */
  query<Row>(sql: Sql): Promise<Row[]>;
  /** The number of rows inserted, changed, deleted or selected. */
  execute(sql: Sql): Promise<number>;
}

/** An open transaction. It is over when the function given to `transaction` has ended; later statements throw. */
export interface Tx extends Queryable {
  /** Goes out with the next statement that is awaited, or with COMMIT, and fails together with that. */
  write(sql: Sql): void;
  /** Runs after COMMIT was acknowledged, in the order of the calls; never after a rollback. It must not throw. */
  afterCommit(fn: () => void): void;
  /** Undoes what `fn` did, and only that, when it throws; the error goes on to the caller. */
  savepoint<T>(fn: () => Promise<T>): Promise<T>;
}

export interface Db extends Queryable {
  /** Commits when `fn` resolves, rolls back when it throws. */
  transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T>;
  /** All or none of the statements, in one transaction and one round trip: the rows of each. */
  batch<Row>(statements: readonly Sql[]): Promise<Row[][]>;
  /** A connection outside the pool, for LISTEN. The caller handles its 'error' and 'end' and ends it. */
  connect(): Promise<Client>;
  /** Throws unless a new connection is answered within 3 s, by a database that can be written to. At most two looks a second. */
  check(): Promise<void>;
  /** Connections now, those of them that are idle, and how many callers wait for one. */
  pool(): { total: number; idle: number; awaited: number };
  /** Waits for what is running, then closes every connection. */
  close(): Promise<void>;
}

export interface DbLog {
  warn(fields: object, message: string): void;
}

export interface DbOptions {
  /** `postgres://…`; never logged. */
  url: string;
  /** The most connections the pool opens. */
  max?: number;
  log?: DbLog;
  /** How long the server may work on a statement; 0 is no limit. Undefined leaves it to the settings of the server. */
  statementTimeoutMs?: number;
  /** How long a transaction may wait for its next statement; then the server ends its connection. */
  idleInTransactionMs?: number;
  /** Behind a transaction pooler, which may give each transaction another server connection, nothing is prepared or set for one. */
  isPooled?: boolean;
  /** By which the silence of the server is measured. */
  clock?: Clock;
}

const DEFAULT_MAX_CONNECTIONS = 20;

// For so long a look at the database counts for who asks next.
const CHECK_KEPT_MS = 500;

// The service has some hundred statements, and lists with filters that anybody may combine: those that were used last are
// prepared, so that no caller can push out the ones that the service lives by.
const MAX_PREPARED_STATEMENTS = 1_000;

// Hears the text of every statement, never its values: for tests, and for whoever traces the service.
const statements = channel('signalbox.statement');

export function createDb(options: DbOptions): Db {
  const { log, max = DEFAULT_MAX_CONNECTIONS, isPooled = false, clock = systemClock } = options;
  const connections = new Connections(options);
  const pool = connections.pool(max);
  // An idle connection that breaks is already out of the pool when this comes; unheard, it would end the process.
  pool.on('error', (error) =>
    log?.warn({ code: (error as { code?: string }).code }, 'lost an idle database connection'),
  );

  const names = new Map<string, string>();

  function nameOf(text: string): string | undefined {
    if (isPooled) return undefined;
    let name = names.get(text);
    if (name === undefined) {
      name = `s_${hash('sha256', text, 'hex').slice(0, 24)}`;
      if (names.size >= MAX_PREPARED_STATEMENTS) names.delete(names.keys().next().value!);
    } else {
      names.delete(text);
    }
    // At the end of the map, whose first is the one that was not used for the longest.
    names.set(text, name);
    return name;
  }

  function toStatement(sql: Sql): Statement {
    const text = sql.text;
    if (statements.hasSubscribers) statements.publish(text);
    return statement(text, sql.values, nameOf(text));
  }

  const command = (text: string): Statement => statement(text, [], nameOf(text));

  async function withConnection<T>(use: (connection: CheckedOutConnection) => Promise<T>): Promise<T> {
    const connection = new CheckedOutConnection(await pool.connect().catch(throwConnectError));
    try {
      return await use(connection);
    } finally {
      connection.release();
    }
  }

  function runAlone(sql: Sql): Promise<StatementResult> {
    const single = toStatement(sql);
    return withConnection(async (connection) => {
      const outcome = await connection.run([single]);
      // Outside a transaction the server commits at the Sync, so a lost connection leaves the outcome open.
      if (outcome.error) throw errorForCaller(outcome, true);
      return outcome.results[0] as StatementResult;
    });
  }

  let checking: Promise<void> | undefined;

  async function check(): Promise<void> {
    try {
      await connections.check().catch((error) => {
        // A server that has no room for another connection is there, and answers the connections that this node has.
        if (!hasTooManyConnections(error) || pool.totalCount === 0) throwConnectError(error);
      });
      void clock.sleep(CHECK_KEPT_MS).then(() => {
        checking = undefined;
      });
    } catch (error) {
      checking = undefined;
      throw error;
    }
  }

  return {
    async query<Row>(sql: Sql) {
      return (await runAlone(sql)).rows as Row[];
    },

    async execute(sql) {
      return rowCount(await runAlone(sql));
    },

    transaction(fn) {
      return withConnection((connection) => new Transaction(connection, toStatement, command).run(fn));
    },

    async batch<Row>(statements: readonly Sql[]) {
      if (statements.length === 0) return [];
      const group = [command('begin'), ...statements.map(toStatement), command('commit')];
      return withConnection(async (connection) => {
        const outcome = await connection.run(group);
        if (outcome.error) {
          await connection.run([command('rollback')]);
          throw errorForCaller(outcome, true);
        }
        return outcome.results.slice(1, -1).map((result) => result.rows as Row[]);
      });
    },

    connect: () => connections.direct().catch(throwConnectError),

    check() {
      checking ??= check();
      return checking;
    },

    pool: () => ({ total: pool.totalCount, idle: pool.idleCount, awaited: pool.waitingCount }),

    close: () => pool.end(),
  };
}
