// `signalbox end-users …`: shows and erases end users, and lets them in.
import type { CreateEndUserToken, EndUserDetails } from '@signalbox/client';
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
  needs: ['organization:manage'],
  operations: ['getEndUser'],
  async run(input) {
    const endUser = await serviceOf(input).endUsers.get(input.args.id);
    await printResult(input, endUser, stateOf(endUser));
  },
});

const erase = command({
  name: 'erase',
  summary: 'Delete all sessions, files and schedules of an end user',
  details: 'The erasure continues in the background; `signalbox end-users get` shows its progress.',
  arguments: args,
  options: serviceOptions,
  examples: [['end-users erase customer-17', 'start to erase an end user']],
  needs: ['organization:manage'],
  operations: ['eraseEndUser'],
  async run(input) {
    const endUser = await serviceOf(input).endUsers.erase(input.args.id);
    await printResult(input, endUser, stateOf(endUser));
  },
});

const createToken = command({
  name: 'create-token',
  summary: 'Create a token for the browser of an end user, for their sessions with one agent',
  arguments: args,
  options: {
    agent: { type: 'string', value: 'AGENT', required: true, about: 'the agent' },
    environment: { type: 'string', value: 'NAME', required: true, about: 'the environment' },
    scopes: { type: 'list', value: 'read,send,decide,open', required: true, about: 'what it can do' },
    name: { type: 'string', value: 'NAME', about: 'the name of the end user, for the console' },
    'expires-in-seconds': { type: 'integer', min: 1, about: 'how long it is valid (3600)' },
    ...serviceOptions,
  },
  examples: [
    [
      'end-users create-token customer-17 --agent agt_01k9… --environment staging --scopes open,read,send',
      'try a chat page',
    ],
  ],
  needs: ['sessions:run'],
  operations: ['createEndUserToken'],
  async run(input) {
    const { values, args: given } = input;
    const created = await serviceOf(input).sessionTokens.create({
      agentId: values.agent,
      environment: values.environment,
      endUser: { id: given.id, name: values.name },
      scopes: values.scopes as CreateEndUserToken['scopes'],
      expiresInSeconds: values['expires-in-seconds'],
    });
    await printResult(input, created, created.token ?? '');
  },
});

export const commands = [get, erase, createToken];

function stateOf({ endUserId, hasSessions, erasure }: EndUserDetails): string {
  const has = `${shown(endUserId)} has ${hasSessions ? 'sessions' : 'no sessions'}.`;
  if (!erasure) return `${has} It was never erased.`;
  const { status, deletedSessions, deletedFiles, deletedSchedules, startedAt, finishedAt } = erasure;
  const deleted = `${deletedSessions} sessions, ${deletedFiles} files and ${deletedSchedules} schedules deleted`;
  return status === 'running'
    ? `${has} Its erasure is running since ${startedAt}: ${deleted} so far.`
    : `${has} Its erasure finished at ${finishedAt}: ${deleted}.`;
}
