// Who may decide an approval, and what is still missing, in words.
import type { Approval, Approvers } from '@signalbox/client';

/** One sentence, such as “People and API keys may decide, except the requester; 2 of them have to approve.” */
export function approversText(by: Approvers): string {
  const { people, roles, keys, endUser, notRequester, count = 1 } = by;
  const named = [
    ...(people ? ['people'] : []),
    ...(roles ? [`people with the role ${listed([...roles], 'or')}`] : []),
    ...(keys ? ['API keys'] : []),
    ...(endUser ? ['the end user'] : []),
  ];
  const who = listed(named.length > 0 ? named : ['people', 'API keys'], 'and');
  const except = notRequester ? ', except the requester' : '';
  const several = count > 1 ? `; ${count} different ones have to approve` : '';
  return `${who[0]!.toUpperCase()}${who.slice(1)} may decide${except}${several}.`;
}

/** What a pending approval with several approvers still needs; undefined if one is enough. */
export function progressText({ progress: { approved, required }, refusal }: Approval): string | undefined {
  if (required === 1) return undefined;
  const missing = required - approved;
  const more = missing === 1 ? 'one more approver' : `${missing} more approvers`;
  if (approved === 0) return `Needs ${required} approvals.`;
  return refusal?.code === 'already_decided_by_you'
    ? `${approved} of ${required} approvals, waiting for ${missing === 1 ? 'another person' : 'other people'}.`
    : `${approved} of ${required} approvals, waiting for ${more}.`;
}

function listed(words: readonly string[], last: 'and' | 'or'): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}
