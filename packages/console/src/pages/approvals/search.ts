/** Which approvals the inbox shows, as it stands in the URL; without a status those that are pending. */
export interface ApprovalsSearch {
  status?: (typeof statuses)[number] | undefined;
  environment?: string | undefined;
  sessionId?: string | undefined;
}

const statuses = ['approved', 'denied', 'expired', 'cancelled', 'all'] as const;

export function approvalsSearch(search: Record<string, unknown>): ApprovalsSearch {
  const status = statuses.find((one) => one === search.status);
  const { environment, sessionId } = search;
  return {
    ...(status && { status }),
    ...(typeof environment === 'string' && environment && { environment }),
    ...(typeof sessionId === 'string' && sessionId && { sessionId }),
  };
}
