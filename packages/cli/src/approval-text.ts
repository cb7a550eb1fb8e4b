// An approval in words: everything that the approver must have seen.
import type { Approval } from '@signalbox/client';
import { shown } from './text.ts';

/** Two lines and the input, never shortened: the approver must have seen all of it. */
export function approvalText(approval: Approval): string {
  const { operationId, name, environment, sessionId, status, requestedAt, expiresAt, input, editedInput } = approval;
  const until = status === 'pending' && expiresAt ? `, expires ${expiresAt}` : '';
  const by = approval.resolvedBy ? ` by ${shown(approval.resolvedBy.name)}` : '';
  const why = approval.reason === null ? '' : `: ${shown(approval.reason)}`;
  const grants =
    status === 'pending' && approval.allowsSession
      ? `  with --session, later calls of this tool in this session run without approval\n`
      : '';
  const approvers = approval.by ? `  ${approversOf(approval)}\n` : '';
  const decisions = approval.progress.required > 1 ? approval.decisions.map(decisionLine).join('') : '';
  const edited = editedInput == null ? '' : `  edited input ${shown(JSON.stringify(editedInput))}\n`;
  return (
    `${operationId}  ${shown(name)}  ${status}${by}${why}\n` +
    `  in ${sessionId}, ${environment}, requested ${requestedAt}${until}\n` +
    `  input ${shown(JSON.stringify(input))}\n${edited}${approvers}${decisions}${grants}${contextText(approval)}`
  );
}

/** The last messages before the call, a line each. */
function contextText({ context = [] }: Approval): string {
  return context
    .map(({ role, text, isCut }) => `  ${role}: ${shown(text).replaceAll(/\s+/g, ' ')}${isCut ? '…' : ''}\n`)
    .join('');
}

/** Who may decide, and what is missing: one line. */
function approversOf({ by, progress, status, refusal }: Approval): string {
  const { people, roles, keys, endUser, notRequester } = by!;
  const named = [people && 'people', ...(roles ?? []), keys && 'API keys', endUser && 'the end user'].filter(Boolean);
  const who = named.length > 0 ? named.join(', ') : 'people, API keys';
  const except = notRequester ? ', except the requester' : '';
  const count = progress.required > 1 ? `; ${progress.approved} of ${progress.required} approvals` : '';
  const you = status === 'pending' && refusal ? `; not by this key: ${shown(refusal.message)}` : '';
  return `to be decided by ${who}${except}${count}${you}`;
}

function decisionLine({ decision, actor, reason, input }: Approval['decisions'][number]): string {
  const why = reason === null ? '' : `: ${shown(reason)}`;
  const edited = input === undefined ? '' : `, with input ${shown(JSON.stringify(input))}`;
  return `  ${decision} by ${shown(actor.name)}${edited}${why}\n`;
}
