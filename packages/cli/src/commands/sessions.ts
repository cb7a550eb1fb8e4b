// `signalbox sessions …`: lists, watches and controls sessions from a terminal.
import type { Session, Signalbox } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { type Command, command, type Options } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { Screen } from '../screen.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { stateOf } from '../session-state.ts';
import { type Column, statusStyle } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const session = { session: { about: 'the id of the session, ses_…' } } as const;
const statuses = ['idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

const list = command({
  name: 'list',
  summary: 'List sessions, newest first',
  options: {
    status: { type: 'string', value: 'STATUS', choices: statuses, about: 'only sessions with this status' },
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
    'end-user': { type: 'string', value: 'ID', about: 'only sessions for this end user' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['sessions list --status waiting', 'sessions that wait for an approval or a tool result']],
  needs: 'sessions:read (permission read)',
  operations: ['listSessions'],
  run(input) {
    const { status, environment, agent: agentId, 'end-user': endUserId } = input.values;
    const client = serviceOf(input);
    const filters = { status, environment, agentId, endUserId };
    return printList(input, (page) => client.sessions.list({ ...filters, ...page }), {
      id: ({ sessionId }) => sessionId,
      describe: describer(client, input.terminal),
    });
  },
});

function describer(client: Signalbox, terminal: Terminal) {
  const names = agentNames(client);
  return async (sessions: readonly Session[]): Promise<Column<Session>[]> => {
    await names.load(sessions.map(({ agentId }) => agentId));
    return [
      { header: 'SESSION', cell: ({ sessionId }) => sessionId },
      { header: 'STATUS', cell: stateOf, style: ({ status }) => statusStyle(status), shrinks: true },
      { header: 'AGENT', cell: ({ agentId }) => names.of(agentId), shrinks: true },
      { header: 'ENVIRONMENT', cell: ({ environment }) => environment, shrinks: true, optional: true },
      { header: 'TURN', cell: ({ turn }) => String(turn), optional: true },
      { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, terminal), optional: true },
      { header: 'ERROR', cell: ({ error }) => shown(error?.message ?? ''), shrinks: true, style: () => 'red' },
    ];
  };
}

const watch = command({
  name: 'watch',
  summary: 'Show the current turn and what follows, until the session ends or you press Ctrl-C',
  arguments: session,
  options: {
    all: { type: 'boolean', about: 'start at the beginning of the session' },
    ...serviceOptions,
  },
  examples: [['sessions watch ses_01k9…', 'follow a session']],
  needs: 'sessions:read (permission read)',
  operations: ['getSession', 'streamSession'],
  async run(input) {
    const { values, args, terminal } = input;
    const { stdout, stderr } = terminal;
    const client = serviceOf(input);
    const found = await client.sessions.get(args.session);
    const cursor = values.all || found.turn < 2 || found.cursor === null ? null : `turn_${found.turn}:seq_0`;
    const screen = new Screen();
    let wasLost = false;
    const onConnection = (state: 'open' | 'lost') => {
      if (state === 'lost') void stderr.write('Connection lost; reconnecting.\n');
      else if (wasLost) void stderr.write('Reconnected.\n');
      wasLost = state === 'lost';
    };
    for await (const { chunks } of client.sessions.stream(found.sessionId, { cursor, onConnection })) {
      for (const chunk of chunks) await stdout.write(values.json ? `${JSON.stringify(chunk)}\n` : screen.show(chunk));
    }
    if (!values.json) await stdout.write(screen.line('The session has ended.'));
  },
});

const send = command({
  name: 'send',
  summary: 'Send a message; it waits for the current turn to end',
  arguments: { ...session, text: { about: 'the message' } },
  options: {
    now: { type: 'boolean', about: 'stop the current turn and continue with this message' },
    ...serviceOptions,
  },
  examples: [['sessions send ses_01k9… "And the second order?"', 'continue a conversation']],
  needs: 'sessions:write (permission write)',
  operations: ['sendMessage'],
  async run(input) {
    const { values, args } = input;
    const message = { content: args.text, ...(values.now && { onBusy: 'steer' as const }) };
    const sent = await serviceOf(input).sessions.sendMessage(args.session, message);
    await printResult(input, sent, `Sent ${sent.messageId}. The session is ${stateOf(sent.session)}`);
  },
});

const fork = command({
  name: 'fork',
  summary: 'Open a session that continues this one after one of its turns',
  arguments: session,
  options: {
    'at-turn': { type: 'integer', about: 'the last turn that it inherits; 0: none (the last finished turn)' },
    input: { type: 'string', value: 'TEXT', about: 'the next message' },
    'agent-version': { type: 'integer', about: 'always use this version of the agent' },
    ...serviceOptions,
  },
  examples: [['sessions fork ses_01k9… --at-turn 2 --input "Try it with a discount"', 'try another way from turn 2']],
  needs: 'sessions:write (permission write)',
  operations: ['forkSession'],
  async run(input) {
    const { 'at-turn': atTurn, 'agent-version': agentVersion, input: text } = input.values;
    const { session: sessionId } = input.args;
    const forked = await serviceOf(input).sessions.fork(sessionId, { atTurn, agentVersion, input: text });
    const words = `Opened ${forked.sessionId}, which continues ${sessionId} after turn ${forked.forkedFrom!.turn}. It is ${stateOf(forked)}`;
    await printResult(input, forked, words);
  },
});

type Action = 'interrupt' | 'retry' | 'compact' | 'close' | 'cancel';

/** A command that changes what a session does, and prints what it does then. */
function acting(name: Action, summary: string): Command {
  return command({
    name,
    summary,
    arguments: session,
    options: serviceOptions satisfies Options,
    examples: [[`sessions ${name} ses_01k9…`, summary.toLowerCase()]],
    needs: 'sessions:write (permission write)',
    operations: [`${name}Session`],
    async run(input) {
      const changed = await serviceOf(input).sessions[name](input.args.session);
      await printResult(input, changed, `${changed.sessionId} is ${stateOf(changed)}`);
    },
  });
}

export const commands = [
  list,
  watch,
  send,
  fork,
  acting('interrupt', 'Stop the current turn'),
  acting('retry', 'Continue the last turn, if it failed'),
  acting('compact', 'Summarise the messages of an idle session for its model'),
  acting('close', 'Complete the session after the current turn and queued messages'),
  acting('cancel', 'End the session now'),
];
