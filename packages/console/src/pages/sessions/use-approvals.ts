// The approvals of a session's calls.
import type { Approval } from '@signalbox/client';
import { useMemo } from 'react';
import { useApiQuery } from '../../data/organization.tsx';

// The approvals of the newest calls. In a longer session, older pending approvals are read separately.
const MAX_APPROVALS = 500;

export function useApprovals(sessionId: string): { approvals: ReadonlyMap<string, Approval>; areThere: boolean } {
  const { data } = useApiQuery(['approvals', 'of', sessionId], async (client) => {
    const all: Approval[] = [...(await client.approvals.list({ sessionId, status: 'pending', limit: 100 })).data];
    for await (const approval of client.approvals.list({ sessionId, order: 'desc', limit: 100 })) {
      all.push(approval);
      if (all.length >= MAX_APPROVALS) break;
    }
    return all;
  });
  const approvals = useMemo(() => new Map(data?.map((approval) => [approval.operationId, approval])), [data]);
  return { approvals, areThere: data !== undefined };
}
