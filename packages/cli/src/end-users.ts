// `signalbox end-users …`: shows and erases end users.
import type { EndUserDetails } from '@signalbox/client';
import { serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, UsageError } from './usage.ts';

const help = `Shows and erases the people for whom sessions are.

  signalbox end-users get ID      whether there are sessions for an end user, and how far its erasure is
  signalbox end-users erase ID    delete all sessions, files and schedules of an end user

${columns(serviceHelp)}
Both need a key with admin. An erasure continues by itself: get shows the progress.
`;

export async function endUsers([verb = '--help', ...args]: string[]): Promise<void> {
  if (verb === '--help') return void process.stdout.write(help);
  if (verb !== 'get' && verb !== 'erase') throw new UsageError(`end-users: there is no "${verb}"`, 'end-users --help');
  const command = `end-users ${verb}`;
  const { values, names } = parseCommand(command, 'end-users --help', args, ['ID'], serviceOptions);
  if (values.help) return void process.stdout.write(help);
  const endUser = await serviceAt(values.url, command).endUsers[verb](names[0]!);
  process.stdout.write(values.json ? `${JSON.stringify(endUser)}\n` : `${stateOf(endUser)}\n`);
}

function stateOf({ endUserId, hasSessions, erasure }: EndUserDetails): string {
  const has = `${shown(endUserId)} has ${hasSessions ? 'sessions' : 'no sessions'}.`;
  if (!erasure) return `${has} It was never erased.`;
  const { status, deletedSessions, deletedFiles, deletedSchedules, startedAt, finishedAt } = erasure;
  const deleted = `${deletedSessions} sessions, ${deletedFiles} files and ${deletedSchedules} schedules deleted`;
  return status === 'running'
    ? `${has} Its erasure is running since ${startedAt}: ${deleted} so far.`
    : `${has} Its erasure finished at ${finishedAt}: ${deleted}.`;
}
