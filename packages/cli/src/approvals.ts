// `signalbox approvals …`: what waits for a person, decided in a terminal.
import type { Approval } from '@signalbox/client';
import { firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, UsageError } from './usage.ts';

const help = `What Agents ask before they act, in a terminal.

  signalbox approvals list                  what is pending, oldest first, with the input
  signalbox approvals approve OPERATION     the call runs
  signalbox approvals deny OPERATION        it does not, and the Agent is told why

${columns([
  ['--reason TEXT', 'why; the Agent is told the reason of a denial'],
  ['--input JSON', 'approve: another input in place of the one that was asked for'],
  ['--session', 'approve: later calls of the tool in this Session run unasked'],
  ['--status STATUS', 'list: approved, denied, expired or cancelled ones, newest first'],
  ['--environment NAME', 'list: of this Environment'],
  ['--session-id SESSION', 'list: of this Session'],
  ['--limit N', 'list: at most so many (20)'],
  ...serviceHelp,
])}
Listing needs a key with read, deciding one with write. The first decision holds: another one ends with 1.
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
  if (!status) throw new UsageError(`${command}: --status is one of ${statuses.join(', ')}`, 'approvals --help');
  const client = serviceAt(values.url, command);
  const found = await firstOf(command, values.limit, (page) =>
    client.approvals.list({
      status,
      // What waits longest is first, and what was decided last.
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
  else process.stdout.write(`${approval.status}: ${shown(approval.name)} in ${approval.sessionId}\n`);
}

function readJson(command: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${command}: --input is not JSON: ${shown((error as Error).message)}`, 'approvals --help');
  }
}

/** Two lines and the input: whoever decides must have seen all of it. */
function wordsOf(approval: Approval): string {
  const { operationId, name, environment, sessionId, status, requestedAt, expiresAt, input, editedInput } = approval;
  const until = status === 'pending' && expiresAt ? `, expires ${expiresAt}` : '';
  const by = approval.resolvedBy ? ` by ${shown(approval.resolvedBy.name)}` : '';
  const why = approval.reason === null ? '' : `: ${shown(approval.reason)}`;
  const grants =
    status === 'pending' && approval.allowsSession
      ? `  a yes lets later calls of it in this Session run unasked\n`
      : '';
  const edited = editedInput == null ? '' : `  instead ${shown(JSON.stringify(editedInput))}\n`;
  return (
    `${operationId}  ${shown(name)}  ${status}${by}${why}\n` +
    `  in ${sessionId}, ${environment}, asked ${requestedAt}${until}\n` +
    `  input ${shown(JSON.stringify(input))}\n${edited}${grants}`
  );
}
