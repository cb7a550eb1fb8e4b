// How many approvals wait for a person: in the title of the browser's tab and beside the navigation, on every page.
import { createContext, type ReactNode, useContext } from 'react';
import { useAsk } from './organization.tsx';

const PendingContext = createContext(0);

// The event log tells of changes at once (live.ts). This is the net under it: nobody may be waited for unseen.
const AGAIN_MS = 60_000;
export function PendingProvider({ children }: { children: ReactNode }) {
  // Under the noun of approvals: what else the overview counts changes more often.
  const { data } = useAsk(['approvals', 'count'], async (client) => (await client.overview()).pendingApprovals, {
    everyMs: AGAIN_MS,
  });
  return <PendingContext value={data ?? 0}>{children}</PendingContext>;
}

/** 0 outside of an organization. */
export const usePending = () => useContext(PendingContext);
