import { environmentPattern, oneOf, sessionIdPattern, textIn } from '../../lib/search-params.ts';

/** The filters of the inbox in the URL; without a status, the pending approvals. */
export interface ApprovalsSearch {
  status?: (typeof statuses)[number] | undefined;
  environment?: string | undefined;
  sessionId?: string | undefined;
}

const statuses = ['approved', 'denied', 'expired', 'cancelled', 'all'] as const;

export function approvalsSearch(search: Record<string, unknown>): ApprovalsSearch {
  return {
    ...oneOf(search, 'status', statuses),
    ...textIn(search, 'environment', environmentPattern),
    ...textIn(search, 'sessionId', sessionIdPattern),
  };
}
