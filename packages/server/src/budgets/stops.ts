// Which budgets stop turns now. A node reads what was spent at most once a second for an organization that has budgets with `stop`, and adds
// its own calls meanwhile; of other organizations, it looks every ten seconds whether they have some. Nothing is reserved: calls that
// are running when the limit is reached still finish, so it may be exceeded by what they cost, and by what other nodes start within
// that second.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import { type BudgetRow, endOf, isReached, type Reach, readBudgets, startOf } from './budgets.ts';

/** A budget with `stop`. */
export interface StopBudget extends Reach {
  name: string;
  limitUsd: number;
  isUsedUp: boolean;
  endsAt: Date;
}

export interface BudgetStops {
  /** The organization's budgets with `stop`. */
  of(organizationId: string): Promise<StopBudget[]>;
  /** A call of this node, until it is part of what was read. */
  add(organizationId: string, of: Reach, costUsd: number): void;
  /** The budgets of the organization have changed. */
  forget(organizationId: string): void;
}

interface Known {
  budgets: BudgetRow[];
  readAt: number;
}

const READ_EVERY_MS = 1_000;
const LOOK_EVERY_MS = 10_000;
const MAX_REMEMBERED = 10_000;

export function createBudgetStops({ db, clock }: { db: Db; clock: Clock }): BudgetStops {
  const known = new Map<string, Known>();
  const reads = new Map<string, Promise<Known>>();

  function beginRead(organizationId: string): Promise<Known> {
    const reading = read(organizationId)
      .then((found) => {
        if (reads.get(organizationId) === reading) remember(organizationId, found);
        return found;
      })
      .finally(() => {
        if (reads.get(organizationId) === reading) reads.delete(organizationId);
      });
    reads.set(organizationId, reading);
    return reading;
  }

  async function read(organizationId: string): Promise<Known> {
    const now = clock.now();
    return { budgets: await readBudgets(db, organizationId, now, sql`and b.stop`), readAt: now.getTime() };
  }

  function remember(organizationId: string, found: Known): void {
    known.delete(organizationId);
    known.set(organizationId, found);
    const [oldest] = known.keys();
    if (known.size > MAX_REMEMBERED && oldest !== undefined) known.delete(oldest);
  }

  function isFresh({ budgets, readAt }: Known): boolean {
    const now = clock.now();
    const everyMs = budgets.length === 0 ? LOOK_EVERY_MS : READ_EVERY_MS;
    return now.getTime() - readAt < everyMs && readAt >= startOf('day', now).getTime();
  }

  return {
    async of(organizationId) {
      let found = known.get(organizationId);
      if (!found || !isFresh(found)) found = await (reads.get(organizationId) ?? beginRead(organizationId));
      if (found.budgets.length === 0) return [];
      const now = clock.now();
      return found.budgets.map(({ period, ...budget }) => ({
        ...budget,
        isUsedUp: isReached(budget.spentUsd, budget.limitUsd),
        endsAt: endOf(period, now),
      }));
    },
    add(organizationId, of, costUsd) {
      for (const budget of known.get(organizationId)?.budgets ?? []) if (isFor(budget, of)) budget.spentUsd += costUsd;
    },
    forget(organizationId) {
      known.delete(organizationId);
      // What it read may be older than the change, so it is not remembered.
      reads.delete(organizationId);
    },
  };
}

/** Whether sessions of an environment, agent and key are counted by the budget. */
export function isFor(budget: Reach, { environment, agentId, keyId }: Reach): boolean {
  return (
    (budget.environment === null || budget.environment === environment) &&
    (budget.agentId === null || budget.agentId === agentId) &&
    (budget.keyId === null || budget.keyId === keyId)
  );
}
