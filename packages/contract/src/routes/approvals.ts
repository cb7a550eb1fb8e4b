import { Approval, ApprovalPage, ApprovalParams, ListApprovals, ResolveApproval } from '../approvals.ts';
import { one, table } from './route.ts';

export const approvalRoutes = table({
  listApprovals: {
    method: 'GET',
    path: '/approvals',
    scope: 'sessions:read',
    token: 'read',
    tokenFields: ['sessionId', 'status', 'order', 'limit', 'cursor'],
    tag: 'Approvals',
    summary: 'List approvals',
    description: 'Of all sessions, oldest first by default.',
    query: ListApprovals,
    status: 200,
    result: ApprovalPage,
  },
  getApproval: {
    method: 'GET',
    path: '/approvals/{operationId}',
    scope: 'sessions:read',
    token: 'read',
    tag: 'Approvals',
    summary: 'Get an approval',
    params: ApprovalParams,
    status: 200,
    result: one('approval', Approval),
  },
  resolveApproval: {
    method: 'POST',
    path: '/approvals/{operationId}/resolve',
    scope: 'approvals:decide',
    token: 'decide',
    tokenFields: ['decision', 'reason'],
    tag: 'Approvals',
    summary: 'Resolve an approval',
    description:
      'Approves or denies the call. The first decision wins, unless the tool asks for several approvers: then the call runs once all of them have approved the same input, and one denial is final.',
    params: ApprovalParams,
    body: ResolveApproval,
    status: 200,
    result: one('approval', Approval),
    errors: ['not_an_approver', 'already_decided_by_you', 'approval_already_resolved'],
  },
});
