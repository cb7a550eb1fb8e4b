// `signalbox approvals …`: lists and decides approvals in a terminal.
import type { Approval } from '@signalbox/client';
import { firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, UsageError } from './usage.ts';

const help = `Lists and decides the tool calls that wait for approval.

  signalbox approvals list                  list pending approvals with their input, oldest first
  signalbox approvals approve OPERATION     approve: the call runs
  signalbox approvals deny OPERATION        deny: the call does not run, and the agent gets the reason

${columns([
  ['--reason TEXT', 'the reason for the decision; the agent sees the reason of a denial'],
  ['--input JSON', 'approve: run the call with this input instead'],
  ['--session', "approve: don't ask again for this tool in this session"],
  ['--status STATUS', 'list: approvals that are approved, denied, expired or cancelled, newest first'],
  ['--environment NAME', 'list: only this environment'],
  ['--session-id SESSION', 'list: only this session'],
  ['--limit N', 'list: at most N (20)'],
  ...serviceHelp,
])}
Listing needs a key with read or the scope sessions:read, deciding one with write or approvals:decide. The first decision counts; a
later one fails with exit status 1. If a tool needs several approvers, all of them have to approve the same input, and one denial is
final. To approve an input that another approver has edited, pass it with --input.
`;

const statuses = ['pending', 'approved', 'denied', 'expired', 'cancelled'] as const;

export async function approvals([verb = '--help', ...args]: string[]): Promise<void> {
  if (verb === '--help') return void process.stdout.write(help);
  const command = `approvals ${verb}`;
  if (verb === 'list') return list(command, args);
  if (verb === 'approve' || verb === 'deny') return decide(command, verb, args);
  throw new UsageError(`approvals: there is no "${verb}"`, 'approvals --help');
}

async function list(command: string, args: string[]): Promise<void> {
  const { values } = parseCommand(command, 'approvals --help', args, [], {
    ...serviceOptions,
    status: { type: 'string' },
    environment: { type: 'string' },
    'session-id': { type: 'string' },
    limit: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const { environment, 'session-id': sessionId } = values;
  const status = statuses.find((one) => one === (values.status ?? 'pending'));
  if (!status) throw new UsageError(`${command}: --status must be one of ${statuses.join(', ')}`, 'approvals --help');
  const client = serviceAt(values.url, command);
  const found = await firstOf(command, values.limit, (page) =>
    client.approvals.list({
      status,
      // Pending: oldest first. Decided: newest first.
      ...(status !== 'pending' && { order: 'desc' as const }),
      ...(environment !== undefined && { environment }),
      ...(sessionId !== undefined && { sessionId }),
      ...page,
    }),
  );
  print(found, values.json, (all) => all.map(wordsOf).join(''));
}

async function decide(command: string, verb: 'approve' | 'deny', args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'approvals --help', args, ['OPERATION'], {
    ...serviceOptions,
    reason: { type: 'string' },
    ...(verb === 'approve' && { input: { type: 'string' }, session: { type: 'boolean' } }),
  } as {
    url: { type: 'string' };
    json: { type: 'boolean' };
    reason: { type: 'string' };
    input: { type: 'string' };
    session: { type: 'boolean' };
  });
  if (values.help) return void process.stdout.write(help);
  const { reason, input, session } = values;
  const approval = await serviceAt(values.url, command).approvals.resolve(names[0]!, {
    decision: verb === 'approve' ? 'approved' : 'denied',
    ...(reason !== undefined && { reason }),
    ...(input !== undefined && { input: readJson(command, input) }),
    ...(session && { scope: 'session' }),
  });
  if (values.json) process.stdout.write(`${JSON.stringify(approval)}\n`);
  else {
    const { approved, required } = approval.progress;
    const status = approval.status === 'pending' ? `${approved} of ${required} approvals` : approval.status;
    process.stdout.write(`${status}: ${shown(approval.name)} in ${approval.sessionId}\n`);
  }
}

function readJson(command: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${command}: --input is not JSON: ${shown((error as Error).message)}`, 'approvals --help');
  }
}

/** Two lines and the input, never shortened: the approver must have seen all of it. */
function wordsOf(approval: Approval): string {
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
    `  input ${shown(JSON.stringify(input))}\n${edited}${approvers}${decisions}${grants}`
  );
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
