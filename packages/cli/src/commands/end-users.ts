// `signalbox end-users …`: shows and erases end users.
import type { EndUserDetails } from '@signalbox/client';
import { command } from '../command.ts';
import { printResult } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { shown } from '../text.ts';

const args = { id: { about: 'the id of the end user, as your application calls it' } } as const;

const get = command({
  name: 'get',
  summary: 'Show whether there are sessions for an end user, and how far its erasure is',
  arguments: args,
  options: serviceOptions,
  examples: [['end-users get customer-17', 'whether anything of this end user is stored']],
  needs: 'sessions:read for all of the organization (permission admin)',
  operations: ['getEndUser'],
  async run(input) {
    const endUser = await serviceOf(input).endUsers.get(input.args.id);
    await printResult(input, endUser, stateOf(endUser));
  },
});

const erase = command({
  name: 'erase',
  summary: 'Delete all sessions, files and schedules of an end user',
  details: 'The erasure continues by itself; `signalbox end-users get` shows its progress.',
  arguments: args,
  options: serviceOptions,
  examples: [['end-users erase customer-17', 'start to erase an end user']],
  needs: 'permission admin',
  operations: ['eraseEndUser'],
  async run(input) {
    const endUser = await serviceOf(input).endUsers.erase(input.args.id);
    await printResult(input, endUser, stateOf(endUser));
  },
});

export const commands = [get, erase];

function stateOf({ endUserId, hasSessions, erasure }: EndUserDetails): string {
  const has = `${shown(endUserId)} has ${hasSessions ? 'sessions' : 'no sessions'}.`;
  if (!erasure) return `${has} It was never erased.`;
  const { status, deletedSessions, deletedFiles, deletedSchedules, startedAt, finishedAt } = erasure;
  const deleted = `${deletedSessions} sessions, ${deletedFiles} files and ${deletedSchedules} schedules deleted`;
  return status === 'running'
    ? `${has} Its erasure is running since ${startedAt}: ${deleted} so far.`
    : `${has} Its erasure finished at ${finishedAt}: ${deleted}.`;
}
