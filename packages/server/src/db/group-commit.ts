// Commits small transactions that arrive at the same time as one, because a commit, a round trip and each statement cost far more than
// their rows: opening a session and ending its turn take half of PostgreSQL's CPU time this way.
//
// A transaction that arrives while none is running starts at once. Others that arrive meanwhile form the next group, which starts
// when the one before it has ended, or has taken a few milliseconds. The busier the database, the larger the groups.
//
// A caller can't tell that a transaction was shared. If anything in a group fails, for example because a session has another writer,
// or its row is locked, the group is rolled back, and each of its transactions runs alone.
import { DatabaseUnavailable, errorForCaller } from './checkout.ts';
import { type InsertMerger, MAX_ROWS } from './merge-inserts.ts';
import type { PipelineOutcome, Statement } from './pipeline.ts';

/** Sends the statements, enclosed by `begin` and `commit`. The outcome has their results only. Rejects if there is no connection. */
export type RunTransaction = (statements: readonly Statement[]) => Promise<PipelineOutcome>;

export interface Change {
  readonly statements: readonly Statement[];
  /** Whether it fails instead of waiting for a lock, also if it runs alone. */
  readonly limitsLocks: boolean;
}

interface Member extends Change {
  resolve(outcome: PipelineOutcome | Promise<PipelineOutcome>): void;
}

// The next group does not wait longer for the one before it, which may have met a slow disk.
const MAX_WAIT_MS = 5;

export class GroupCommit {
  readonly #run: RunTransaction;
  readonly #merger: InsertMerger;
  readonly #limitLocks: Statement;
  /** By key; undefined if no group is running. */
  readonly #waiting = new Map<number, Member[]>();

  /** `limitLocks`: because a group holds the locks of all its sessions while it waits for one of them. */
  constructor(run: RunTransaction, merger: InsertMerger, limitLocks: Statement) {
    this.#run = run;
    this.#merger = merger;
    this.#limitLocks = limitLocks;
  }

  /** Transactions with the same `key` may share one. None may depend on another. */
  commit(key: number, change: Change): Promise<PipelineOutcome> {
    const { promise, resolve } = Promise.withResolvers<PipelineOutcome>();
    const member = { ...change, resolve };
    const waiting = this.#waiting.get(key);
    if (waiting) waiting.push(member);
    else this.#start(key, [member]);
    return promise;
  }

  async commitAlone({ statements, limitsLocks }: Change): Promise<PipelineOutcome> {
    if (!limitsLocks) return this.#run(statements);
    const outcome = await this.#run([this.#limitLocks, ...statements]);
    return { ...outcome, results: outcome.results.slice(1) };
  }

  #start(key: number, members: readonly Member[]): void {
    this.#waiting.set(key, []);
    let isOver = false;
    const next = () => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      const waiting = this.#waiting.get(key)!;
      this.#waiting.delete(key);
      if (waiting.length > 0) this.#start(key, waiting);
    };
    const timer = setTimeout(next, MAX_WAIT_MS);
    const groups: Promise<void>[] = [];
    for (let at = 0; at < members.length; at += MAX_ROWS)
      groups.push(this.#commitTogether(members.slice(at, at + MAX_ROWS)));
    void Promise.allSettled(groups).then(next);
  }

  async #commitTogether(members: readonly Member[]): Promise<void> {
    if (members.length > 1) {
      const { statements, places } = planGroup(members, this.#merger);
      const running = this.#run([this.#limitLocks, ...statements]);
      const outcome = await running.catch(() => undefined);
      const isRefused = outcome?.error && !(errorForCaller(outcome, true) instanceof DatabaseUnavailable);
      if (!isRefused) {
        for (const [index, { resolve }] of members.entries())
          resolve(outcome ? ownOutcome(outcome, places[index]!) : running);
        return;
      }
    }
    const running = members.map((member) => this.commitAlone(member));
    for (const [index, { resolve }] of members.entries()) resolve(running[index]!);
    await Promise.allSettled(running);
  }
}

interface GroupPlan {
  statements: Statement[];
  /** The index in `statements` of each statement of each member. */
  places: number[][];
}

/** Each member's statements in order, with inserts that only differ in their values as one. */
function planGroup(members: readonly Member[], { isPlain, merge }: InsertMerger): GroupPlan {
  const statements: Statement[] = [];
  const places: number[][] = members.map(() => []);
  const nextOf = (index: number) => members[index]!.statements[places[index]!.length];
  const place = (which: readonly number[], statement: Statement) => {
    for (const index of which) places[index]!.push(statements.length);
    statements.push(statement);
  };
  for (const first of members.keys()) {
    for (let next = nextOf(first); next; next = nextOf(first)) {
      if (isPlain(next)) {
        const { text } = next;
        const same = [...members.keys()].filter((index) => nextOf(index)?.text === text);
        place(same, merge(same.map((index) => nextOf(index)!)));
        continue;
      }
      // So that the inserts after them meet.
      for (const index of members.keys()) {
        const other = nextOf(index);
        if (other && !isPlain(other)) place([index], other);
      }
    }
  }
  return { statements, places };
}

/** The first statement of a group limits the locks. A merged insert has no rows. */
function ownOutcome({ results, ...rest }: PipelineOutcome, places: readonly number[]): PipelineOutcome {
  return { ...rest, results: places.flatMap((place) => results[place + 1] ?? []) };
}
