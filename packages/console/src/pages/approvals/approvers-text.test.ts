import type { Approval, Approvers } from '@signalbox/client';
import { expect, test } from 'vitest';
import { approversText, progressText } from './approvers-text.ts';

test.each<[Approvers, string]>([
  [{}, 'People and API keys may decide.'],
  [
    { notRequester: true, count: 2 },
    'People and API keys may decide, except the requester; 2 different ones have to approve.',
  ],
  [{ roles: ['admin', 'owner'] }, 'People with the role admin or owner may decide.'],
  [
    { roles: ['owner'], keys: true, endUser: true },
    'People with the role owner, API keys and the end user may decide.',
  ],
  [{ endUser: true }, 'The end user may decide.'],
])('%j is one sentence', (by, text) => {
  expect(approversText(by)).toBe(text);
});

test.each([
  [0, 1, undefined, undefined],
  [0, 2, undefined, 'Needs 2 approvals.'],
  [1, 2, undefined, '1 of 2 approvals, waiting for one more approver.'],
  [1, 2, 'already_decided_by_you', '1 of 2 approvals, waiting for another person.'],
  [1, 3, undefined, '1 of 3 approvals, waiting for 2 more approvers.'],
])('%i of %i approvals say what is missing', (approved, required, code, text) => {
  const refusal = code === undefined ? null : { code, message: '' };
  expect(progressText({ progress: { approved, required }, refusal } as Approval)).toBe(text);
});
