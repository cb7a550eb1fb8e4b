// A transaction: one connection and a queue of statements.
//
// `begin` is sent together with the first statement. Statements issued while a group is running form the next group. A statement
// passed to `write` is sent with the next awaited statement, or with COMMIT.
import type { Sql } from 'sql-template-tag';
import { type CheckedOutConnection, errorForCaller } from './checkout.ts';
import type { Tx } from './db.ts';
import { handled } from './handled.ts';
import { rowCount, type Statement, type StatementResult } from './pipeline.ts';
import type { PoolLog } from './pool.ts';

interface Pending {
  statement: Statement;
  resolve(result: StatementResult): void;
  reject(error: unknown): void;
}

export class Transaction {
  readonly #connection: CheckedOutConnection;
  readonly #toStatement: (sql: Sql) => Statement;
  readonly #command: (text: string) => Statement;
  readonly #log: PoolLog | undefined;
  readonly #afterCommit: (() => void)[] = [];
  #queue: Pending[] = [];
  #written: Pending[] = [];
  /**
   * Resolves when nothing waits or runs any more. A rollback must not be sent before that: in the group of a statement that fails, the
   * server skips it.
   */
  #draining: Promise<void> | undefined;
  #begun = false;
  #over = false;
  #savepoints = 0;
  /** The cause to report if the caller ignored an error and COMMIT then rolled back. */
  #firstError: unknown;
  /** The error of a statement with a value that can't be sent: the server does not know of it, so it would commit. */
  #unsent: { error: unknown } | undefined;

  constructor(
    connection: CheckedOutConnection,
    toStatement: (sql: Sql) => Statement,
    command: (text: string) => Statement,
    log?: PoolLog,
  ) {
    this.#connection = connection;
    this.#log = log;
    this.#toStatement = toStatement;
    this.#command = command;
  }

  async run<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await fn(this.#facade());
    } catch (error) {
      this.#over = true;
      await this.#rollBack();
      throw error;
    }
    this.#over = true;
    if (this.#unsent) {
      await this.#rollBack();
      throw rolledBack(this.#unsent.error);
    }
    if (this.#begun) {
      const { tag } = await this.#send(this.#command('commit')).catch(async (error) => {
        // If a statement sent with it failed, COMMIT was not run.
        await this.#rollBack();
        throw error;
      });
      // In a failed transaction, COMMIT succeeds with the tag ROLLBACK.
      if (tag !== 'COMMIT') throw rolledBack(this.#firstError);
    }
    this.#runAfterCommit();
    return value;
  }

  /** The change is committed, so an error must neither be reported as its failure nor keep the other functions from running. */
  #runAfterCommit(): void {
    for (const fn of this.#afterCommit) {
      try {
        fn();
      } catch (error) {
        this.#log?.warn({ err: error }, 'a function that follows a commit failed');
      }
    }
  }

  async #rollBack(): Promise<void> {
    this.#written = [];
    if (!this.#begun) return;
    await this.#draining;
    // If this fails, the connection is closed instead of reused, and the server rolls back.
    await this.#send(this.#command('rollback')).catch(() => {});
  }

  #facade(): Tx {
    const issue = async (sql: Sql): Promise<StatementResult> => {
      if (this.#over) throw new Error('The transaction is over');
      return this.#send(this.#encode(sql));
    };
    return {
      // They fail with their transaction, whether or not anyone waits for them.
      query: <Row>(sql: Sql) => handled(issue(sql).then(({ rows }) => rows as Row[])),
      execute: (sql) => handled(issue(sql).then(rowCount)),
      write: (sql) => {
        if (this.#over) throw new Error('The transaction is over');
        this.#begun = true;
        // The awaited statement of the same group reports its failure.
        this.#written.push({ statement: this.#encode(sql), resolve() {}, reject() {} });
      },
      afterCommit: (fn) => {
        if (this.#over) throw new Error('The transaction is over');
        this.#afterCommit.push(fn);
      },
      savepoint: (fn) => handled(this.#savepoint(fn)),
    };
  }

  async #savepoint<T>(fn: () => Promise<T>): Promise<T> {
    if (this.#over) throw new Error('The transaction is over');
    this.#savepoints += 1;
    // Named by depth rather than by use, so that the statements can be prepared.
    const name = `s${this.#savepoints}`;
    const callbacks = this.#afterCommit.length;
    // Sent with the first statement of `fn`, which fails if this does.
    const set = this.#send(this.#command(`savepoint ${name}`));
    set.catch(() => {});
    try {
      const value = await fn();
      // If it outlasts its transaction, the connection may be in the transaction of another caller.
      if (this.#over) throw new Error('The transaction is over');
      await this.#send(this.#command(`release savepoint ${name}`));
      return value;
    } catch (error) {
      this.#afterCommit.length = callbacks;
      this.#written = [];
      await this.#draining;
      if (this.#over) throw error;
      await Promise.all([
        this.#send(this.#command(`rollback to savepoint ${name}`)),
        this.#send(this.#command(`release savepoint ${name}`)),
      ]);
      this.#firstError = undefined;
      this.#unsent = undefined;
      throw error;
    } finally {
      this.#savepoints -= 1;
    }
  }

  #encode(sql: Sql): Statement {
    try {
      return this.#toStatement(sql);
    } catch (error) {
      this.#unsent ??= { error };
      throw error;
    }
  }

  #send(statement: Statement): Promise<StatementResult> {
    this.#begun = true;
    const { promise, resolve, reject } = Promise.withResolvers<StatementResult>();
    this.#draining ??= Promise.resolve().then(() => this.#drain());
    this.#queue.push(...this.#written, { statement, resolve, reject });
    this.#written = [];
    return promise;
  }

  #opened = false;

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#queue;
      this.#queue = [];
      await this.#sendGroup(group);
    }
    this.#draining = undefined;
  }

  async #sendGroup(group: readonly Pending[]): Promise<void> {
    const opening = this.#opened ? [] : [this.#command('begin')];
    this.#opened = true;
    const outcome = await this.#connection.run([...opening, ...group.map((pending) => pending.statement)]);
    const done = outcome.results.slice(opening.length);
    const committing = group.at(-1)?.statement.text === 'commit';
    const failure = outcome.error ? errorForCaller(outcome, committing) : undefined;
    this.#firstError ??= failure;
    for (const [index, pending] of group.entries()) {
      const result = done[index];
      if (result) pending.resolve(result);
      else pending.reject(failure);
    }
  }
}

function rolledBack(cause: unknown): Error {
  return new Error('The transaction was rolled back, because a statement in it had failed', { cause });
}
