// Alerts of budgets. A threshold that is reached inserts a row and records an event, in one transaction. The row's key is the threshold
// of the period, so it alerts once, whatever nodes look and however often they restart.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { type BudgetRow, budgetEvent, isReached, readBudgets, startOf } from './budgets.ts';

export async function organizationsWithBudgets({ shards }: { shards: Shards }): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for budgets',
    (within) => sql`
    select distinct organization_id as "organizationId" from budgets where true ${within()}`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** Returns how many thresholds have alerted now. */
export async function alertBudgets(db: Db, organizationId: string, now: Date): Promise<number> {
  const budgets = await readBudgets(db, organizationId, now);
  const due = budgets.flatMap((budget) =>
    budget.thresholds
      .filter((threshold) => isReached(budget.spentUsd, budget.limitUsd, threshold))
      .filter((threshold) => budget.alerts.every((alert) => alert.threshold !== threshold))
      .map((threshold) => ({ budget, threshold })),
  );
  let alerted = 0;
  for (const { budget, threshold } of due) if (await alert(db, organizationId, budget, threshold, now)) alerted += 1;
  return alerted;
}

function alert(db: Db, organizationId: string, budget: BudgetRow, threshold: number, now: Date): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Not if the budget was deleted or changed meanwhile.
    const isFirst = await tx.execute(sql`
      insert into budget_alerts (organization_id, name, period_starts_at, threshold, alerted_at)
      select b.organization_id, b.name, ${startOf(budget.period, now)}, ${threshold}, ${now}
      from budgets b
      where b.organization_id = ${organizationId} and b.name = ${budget.name} and b.updated_at = ${budget.updatedAt}
      on conflict (organization_id, name, period_starts_at, threshold) do nothing`);
    if (isFirst === 0) return false;
    await tx.query(
      recordEvent(systemSource(organizationId), now, {
        type: 'budget.threshold_reached',
        outcome: threshold >= 100 ? 'failure' : 'success',
        ...budgetEvent(budget),
        changes: { threshold: [null, threshold], spentUsd: [null, budget.spentUsd], limitUsd: [null, budget.limitUsd] },
      }),
    );
    return true;
  });
}
