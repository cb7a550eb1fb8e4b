// `signalbox sessions chat`: a conversation at a terminal.
import type { Session } from '@signalbox/client';
import { Chat } from '../chat.ts';
import { command, UsageError } from '../command.ts';
import { environmentFor, environmentOption } from '../environment.ts';
import { LineReader } from '../line-reader.ts';
import { connectionOptions, serviceOf } from '../service.ts';

export const chat = command({
  name: 'chat',
  summary: 'Talk with an agent: in a new session, or in one that is open',
  details:
    'Responses appear as they are generated. Approvals and the results of tools that your program runs are asked for. Ctrl-C stops the current turn; a second one leaves, as Ctrl-D does, and the session stays open.',
  arguments: { id: { about: 'an agent agt_…, or a session ses_…' } },
  options: {
    environment: { ...environmentOption, about: `of a new session: ${environmentOption.about}` },
    'end-user': { type: 'string', value: 'ID', about: 'the end user a new session is for: the id in your system' },
    'agent-version': { type: 'integer', min: 1, about: 'a new session always uses this version of the agent' },
    ...connectionOptions,
  },
  examples: [
    ['sessions chat agt_01k9… --environment staging', 'try an agent'],
    ['sessions chat ses_01k9…', 'continue a conversation'],
  ],
  needs: ['sessions:run', 'sessions:read', 'approvals:decide'],
  operations: [
    'openSession',
    'getSession',
    'streamSession',
    'sendMessage',
    'interruptSession',
    'getApproval',
    'resolveApproval',
    'sendToolResult',
  ],
  async run(input) {
    const { values, args, terminal, command: fullName } = input;
    const client = serviceOf(input);
    let session: Session;
    if (args.id.startsWith('agt_')) {
      const { 'end-user': endUserId, 'agent-version': agentVersion } = values;
      const environment = await environmentFor(input, client);
      const endUser = endUserId === undefined ? undefined : { id: endUserId };
      session = await client.sessions.open({ agentId: args.id, environment, endUser, agentVersion });
    } else if (args.id.startsWith('ses_')) session = await client.sessions.get(args.id);
    else
      throw new UsageError(
        `${fullName}: "${args.id}" is not the id of an agent (agt_…) or a session (ses_…)`,
        'agents list',
      );
    const lines = new LineReader(terminal);
    try {
      await new Chat(client, session, lines, terminal).run();
    } finally {
      lines.close();
    }
  },
});
