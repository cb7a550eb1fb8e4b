// What waits for people and what fails now. The tab's title and the navigation of every page show it for the environment of the page.
import type { Overview, Signalbox } from '@signalbox/client';
import { createContext, type ReactNode, useContext } from 'react';
import { useEnvironment } from './environment.ts';
import { useApiQuery } from './organization.tsx';

// The event log reports changes (frame/live.ts), but not that a webhook or a schedule fails, or that a delivery waits.
const AGAIN_MS = 60_000;

/** The overview of one environment, or of all. Everything that shows it shares its requests. */
export function useOverview(
  environment: string | undefined,
  { everyMs = AGAIN_MS, enabled = true }: { everyMs?: number; enabled?: boolean } = {},
) {
  const within = environment === undefined ? {} : { environment };
  const ask = async (client: Signalbox): Promise<Overview> => {
    const overview = await client.overview(within);
    // During an upgrade, a node of the release before may answer, which counts no schedules.
    return { ...overview, schedules: overview.schedules ?? { failing: 0 } };
  };
  return useApiQuery(['overview', environment], ask, { everyMs, enabled });
}

const OverviewContext = createContext<Overview | undefined>(undefined);

/** Asks once for all that is in the frame. */
export function OverviewProvider({ children }: { children: ReactNode }) {
  const { data } = useOverview(useEnvironment());
  return <OverviewContext value={data}>{children}</OverviewContext>;
}

/** How many approvals are pending. 0 until that is known, and outside an organization. */
export const usePending = (): number => useContext(OverviewContext)?.pendingApprovals ?? 0;

export type Failing = 'webhooks' | 'schedules';

/** Whether one needs attention. It is not a number, because a webhook that fails can be blocked as well and would count twice. */
export function useIsFailing(of: Failing): boolean {
  const overview = useContext(OverviewContext);
  if (!overview) return false;
  if (of === 'schedules') return overview.schedules.failing > 0;
  const { blocked, failing, degraded, disabled } = overview.webhooks;
  return blocked + failing + degraded + disabled > 0;
}
