// Budgets that need attention: near their limit, or with an alert that came only after the end of their period.
import type { Event, OrganizationBudget } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { inDays } from '../../ui/time.tsx';

/** What was spent of a budget in its current period, or in an earlier one. */
export interface SpentBudget extends Pick<OrganizationBudget, 'name' | 'spentUsd' | 'limitUsd'> {
  when: string;
  refuses: boolean;
}

// The share of a budget's limit from which the budget is shown.
const NEAR = 0.8;
const EVERY_MS = 60_000;

/** Null if they could not be read. */
export function useBudgetsToWatch(): SpentBudget[] | null | undefined {
  const environment = useEnvironment();
  const budgets = useApiQuery(['budgets', 'all'], (client) => client.budgets.list(), { everyMs: EVERY_MS });
  const alerts = useApiQuery(
    ['budgets', 'alerts'],
    async (client) =>
      (await client.events.list({ type: 'budget.threshold_reached', since: inDays(-1), limit: 100 })).data,
    { everyMs: EVERY_MS },
  );
  if (budgets.error || alerts.error) return null;
  if (!budgets.data || !alerts.data) return undefined;
  const shown = budgets.data.filter(
    (budget) => [undefined, budget.environment].includes(environment) || budget.environment === null,
  );
  return [...shown.filter(isNear).map(now), ...shown.flatMap((budget) => lateAlert(budget, alerts.data))];
}

function isNear({ spentUsd, limitUsd }: Pick<OrganizationBudget, 'spentUsd' | 'limitUsd'>): boolean {
  return spentUsd >= NEAR * limitUsd;
}

function now({ name, spentUsd, limitUsd, period, stop }: OrganizationBudget): SpentBudget {
  const when = period === 'day' ? 'today' : 'this month';
  return { name, spentUsd, limitUsd, when, refuses: stop && spentUsd >= limitUsd };
}

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const month = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' });

/**
 * The highest threshold that alerted only after the end of its period, when the budget shows what was spent in the next one. An alert that
 * was in time is not repeated.
 */
function lateAlert(budget: OrganizationBudget, alerts: readonly Event[]): SpentBudget[] {
  const { name, period, periodStartsAt: ended } = budget;
  const late = alerts
    .filter(({ resource, occurredAt }) => resource.id === name && occurredAt >= ended)
    .map(({ changes }) => ({
      spentUsd: Number(changes?.spentUsd?.[1]),
      limitUsd: Number(changes?.limitUsd?.[1]),
      startsAt: String(changes?.periodStartsAt?.[1]),
    }))
    .filter((alert) => alert.startsAt < ended && isNear(alert))
    .toSorted((a, b) => b.spentUsd - a.spentUsd);
  return late.slice(0, 1).map(({ spentUsd, limitUsd, startsAt }) => {
    const start = new Date(startsAt);
    const when = period === 'day' ? `on ${day.format(start)}` : `in ${month.format(start)}`;
    return { name, spentUsd, limitUsd, when, refuses: false };
  });
}

export function BudgetLine({ budget: { name, spentUsd, limitUsd, when, refuses } }: { budget: SpentBudget }) {
  const { organizationId } = useOrganization();
  return (
    <>
      <Badge tone={spentUsd >= limitUsd ? 'bad' : 'warn'}>budget</Badge>
      <span>
        <Link to="/$organizationId/budgets" params={{ organizationId }}>
          {name}
        </Link>
        : <Dollars usd={spentUsd} as="money" /> of <Dollars usd={limitUsd} as="money" /> {when}
        {refuses && '. New turns are refused'}
      </span>
    </>
  );
}
