// Alerts of budgets. A threshold that is reached inserts a row and records an event, in one transaction. The row's key is the threshold
// of the period, so it alerts once, whatever nodes look and however often they restart.
//
// What was spent changes only by calls, which wait in model_usage until they are compacted, and a threshold is reached as well by a lower
// limit. So a node looks only at organizations that have such calls, or a budget that was just set. The compaction looks in its own
// transaction: calls that it takes away between two looks alert too.
//
// A threshold can be reached between the last look in a period and its end, and the call that reaches it can be stored after that. For
// a day after its end, a period is therefore looked at as well, which is also how long a service may be stopped meanwhile.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { areThere } from '../db/rounds.ts';
import type { Shards } from '../db/shards.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { type BudgetRow, budgetEvent, endOf, isReached, readBudgets, startOf } from './budgets.ts';

/** Organizations whose budgets may have reached a threshold: with calls that are not compacted, or a budget set since `since`. */
export async function organizationsToAlert({ shards }: { shards: Shards }, since: Date): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for budgets',
    (within) => sql`
    select distinct b.organization_id as "organizationId" from budgets b
    where (b.updated_at >= ${since} or ${areThere(sql`
      from model_usage u where u.organization_id = b.organization_id ${within(sql`u.organization_id`)}`)}) ${within(sql`b.organization_id`)}`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** Returns how many thresholds have alerted now. */
export function alertBudgets(db: Db, organizationId: string, now: Date): Promise<number> {
  return db.transaction((tx) => alertBudgetsIn(tx, organizationId, now));
}

/** As `alertBudgets`, within a transaction. */
export async function alertBudgetsIn(tx: Tx, organizationId: string, now: Date): Promise<number> {
  const budgets = await readBudgets(tx, organizationId, now);
  if (budgets.length === 0) return 0;
  const alerted = await alertReached(tx, organizationId, now, budgets);
  const today = startOf('day', now);
  const before = new Date(today.getTime() - 1);
  const ended = (['day', 'month'] as const).filter((period) => endOf(period, before) <= today);
  // Not with a limit that was set after the end.
  const overBudgets = await readBudgets(
    tx,
    organizationId,
    before,
    sql`and b.period = any(${ended}::text[]) and b.updated_at < ${today}`,
  );
  return alerted + (await alertReached(tx, organizationId, now, overBudgets, before));
}

/** `within`: an instant of the period in which they were spent. */
async function alertReached(
  tx: Tx,
  organizationId: string,
  now: Date,
  budgets: readonly BudgetRow[],
  within: Date = now,
): Promise<number> {
  const due = budgets.flatMap((budget) =>
    budget.thresholds
      .filter((threshold) => isReached(budget.spentUsd, budget.limitUsd, threshold))
      .filter((threshold) => budget.alerts.every((alert) => alert.threshold !== threshold))
      .map((threshold) => ({ budget, threshold })),
  );
  let alerted = 0;
  for (const { budget, threshold } of due) {
    const periodStartsAt = startOf(budget.period, within);
    if (await alert(tx, organizationId, budget, { threshold, periodStartsAt }, now)) alerted += 1;
  }
  return alerted;
}

async function alert(
  tx: Tx,
  organizationId: string,
  budget: BudgetRow,
  { threshold, periodStartsAt }: { threshold: number; periodStartsAt: Date },
  now: Date,
): Promise<boolean> {
  // Not if the budget was deleted or changed meanwhile. Two transactions that alert insert in the same order, by name and threshold.
  const isFirst = await tx.execute(sql`
    insert into budget_alerts (organization_id, name, period_starts_at, threshold, alerted_at)
    select b.organization_id, b.name, ${periodStartsAt}, ${threshold}, ${now}
    from budgets b
    where b.organization_id = ${organizationId} and b.name = ${budget.name} and b.updated_at = ${budget.updatedAt}
    on conflict (organization_id, name, period_starts_at, threshold) do nothing`);
  if (isFirst === 0) return false;
  await tx.query(
    recordEvent(systemSource(organizationId), now, {
      type: 'budget.threshold_reached',
      outcome: threshold >= 100 ? 'failure' : 'success',
      ...budgetEvent(budget),
      changes: {
        threshold: [null, threshold],
        spentUsd: [null, budget.spentUsd],
        limitUsd: [null, budget.limitUsd],
        periodStartsAt: [null, periodStartsAt.toISOString()],
      },
    }),
  );
  return true;
}
