// A node's database whose connection breaks at random, at any statement. It can also be cut off, as if the node's process had been
// killed, or paused, as if the process had been stopped.
import type { Sql } from 'sql-template-tag';
import { DatabaseUnavailable, type Db, type Tx } from '../../src/db/db.ts';
import type { Random } from './random.ts';

/** The probability of each fault for a statement or transaction, from 0 to 1. */
export interface FaultShares {
  /** The connection breaks before the server receives it. */
  lost: number;
  /** The server commits it, and the response is lost. */
  unanswered: number;
  /** The connection breaks, and the server commits it later. Does not apply to `transaction`, which reads results. */
  late: number;
  /** It is slow. */
  slow: number;
}

export interface FaultyDb {
  db: Db;
  /** Nothing gets through from now on, as if the process had been killed. */
  cut(): void;
  /** Nothing is sent or received until the returned function is called, as if the process had been stopped. */
  stop(): () => void;
  /** Whether random faults occur. Initially false. */
  breaks(isBreaking: boolean): void;
}

const MAX_SLOW_TICKS = 40;
// Long enough for a retry to have written the text first.
const MAX_LATE_MS = 60;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const lost = () => new DatabaseUnavailable(new Error('Connection terminated unexpectedly'), true);

export function faultyDb(base: Db, random: Random, shares: FaultShares): FaultyDb {
  let isCut = false;
  let isBreaking = false;
  let stopped: Promise<void> | undefined;

  async function ticks(): Promise<void> {
    for (let left = random.below(MAX_SLOW_TICKS); left > 0; left -= 1) await tick();
  }

  async function going(): Promise<void> {
    while (stopped) await stopped;
    if (isCut) throw lost();
  }

  function draw(kinds: readonly (keyof FaultShares)[]): keyof FaultShares | undefined {
    return isBreaking ? kinds.find((kind) => random.chance(shares[kind])) : undefined;
  }

  async function run<T>(act: () => Promise<T>): Promise<T> {
    await going();
    const fault = draw(['lost', 'unanswered', 'late', 'slow']);
    if (fault === 'lost') throw lost();
    if (fault === 'late') {
      // Before the caller has checked the outcome, or after it has repeated the statement.
      const wait = random.chance(0.7) ? ticks() : delay(random.below(MAX_LATE_MS));
      void wait.then(act).catch(() => {});
      throw lost();
    }
    if (fault === 'slow') await ticks();
    const answer = await act();
    if (fault === 'unanswered') throw lost();
    await going();
    return answer;
  }

  async function transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    await going();
    const fault = draw(['lost', 'unanswered', 'slow']);
    if (fault === 'lost') throw lost();
    if (fault === 'slow') await ticks();
    const afterCommits: (() => void)[] = [];
    const value = await base.transaction((tx) => fn({ ...tx, afterCommit: (fn) => afterCommits.push(fn) }));
    if (fault === 'unanswered') throw lost();
    await going();
    for (const fn of afterCommits) fn();
    return value;
  }

  const db: Db = {
    ...base,
    query: <Row>(sql: Sql) => run(() => base.query<Row>(sql)),
    execute: (sql) => run(() => base.execute(sql)),
    batch: <Row>(statements: readonly Sql[]) => run(() => base.batch<Row>(statements)),
    transaction,
    of: () => db,
  };
  return {
    db,
    cut() {
      isCut = true;
    },
    stop() {
      const going = Promise.withResolvers<void>();
      stopped = going.promise;
      return () => {
        stopped = undefined;
        going.resolve();
      };
    },
    breaks(value) {
      isBreaking = value;
    },
  };
}

/** The same database, with its statements rewritten before they are sent, to disable a mechanism of the service. */
export function mutatedDb(base: Db, mutate: (text: string) => string): Db {
  const mutated = ({ text, values }: Sql): Sql => ({ text: mutate(text), values }) as unknown as Sql;
  const onTx = (tx: Tx): Tx => ({
    ...tx,
    query: <Row>(sql: Sql) => tx.query<Row>(mutated(sql)),
    execute: (sql) => tx.execute(mutated(sql)),
  });
  return {
    ...base,
    of: (organizationId) => mutatedDb(base.of(organizationId), mutate),
    query: <Row>(sql: Sql) => base.query<Row>(mutated(sql)),
    execute: (sql) => base.execute(mutated(sql)),
    batch: <Row>(statements: readonly Sql[]) => base.batch<Row>(statements.map(mutated)),
    transaction: (fn) => base.transaction((tx) => fn(onTx(tx))),
  };
}
