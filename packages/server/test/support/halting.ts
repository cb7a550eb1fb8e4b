// A node that halts at one statement, as if its process had been killed there.
import type { Sql } from 'sql-template-tag';
import type { Db, Tx } from '../../src/db/db.ts';
import type { Platform } from '../../src/platform.ts';

export interface HaltingNode {
  platform: Platform;
  /** Resolves when the node has halted. */
  halted: Promise<void>;
  /** Fails what is halted, so that the node can be closed. */
  release(): void;
}

/** `before`: the statement, or its transaction, is not committed. `after`: it is committed, but the node gets no response. */
export function haltingAt(node: Platform, statement: RegExp, when: 'before' | 'after'): HaltingNode {
  const halted = Promise.withResolvers<void>();
  const endless = Promise.withResolvers<never>();
  endless.promise.catch(() => {});
  let isHalted = false;
  const isIt = (one: Sql) => statement.test(one.text.replaceAll(/\s+/g, ' ').trim());

  async function halt(): Promise<never> {
    isHalted = true;
    halted.resolve();
    return endless.promise;
  }

  async function unlessHalted<T>(meets: boolean, act: () => Promise<T>): Promise<T> {
    if (isHalted) return endless.promise;
    if (!meets) return act();
    if (when === 'after') await act();
    return halt();
  }

  /** Thrown to roll a transaction back. */
  const undo = new Error('The node has halted');
  async function transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
    if (isHalted) return endless.promise;
    let met = false;
    const meet = (one: Sql) => {
      met ||= isIt(one);
      if (met && when === 'before') throw undo;
    };
    try {
      const value = await node.db.transaction((tx) =>
        fn({
          ...tx,
          afterCommit: (told) => tx.afterCommit(() => met || told()),
          async query<Row>(one: Sql) {
            meet(one);
            return tx.query<Row>(one);
          },
          async execute(one) {
            meet(one);
            return tx.execute(one);
          },
        }),
      );
      return met ? await halt() : value;
    } catch (error) {
      return error === undo ? halt() : Promise.reject(error);
    }
  }

  const db: Db = {
    ...node.db,
    query: <Row>(one: Sql) => unlessHalted(isIt(one), () => node.db.query<Row>(one)),
    execute: (one) => unlessHalted(isIt(one), () => node.db.execute(one)),
    batch: <Row>(statements: readonly Sql[]) =>
      unlessHalted(statements.some(isIt), () => node.db.batch<Row>(statements)),
    transaction,
  };
  return { platform: { ...node, db }, halted: halted.promise, release: () => endless.reject(undo) };
}
