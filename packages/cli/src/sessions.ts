// `signalbox sessions …`: what goes on, watched and steered from a terminal.
import type { Chunk, Session, Signalbox } from '@signalbox/client';
import { agentNames, firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, shownLines, table, UsageError } from './usage.ts';

const help = `Sessions, in a terminal.

  signalbox sessions list                   newest first
  signalbox sessions watch SESSION          the turn under way and what follows, until the Session ends or you press Ctrl-C
  signalbox sessions send SESSION TEXT      a message; it waits for the turn under way
  signalbox sessions interrupt SESSION      stops the turn
  signalbox sessions close SESSION          completed when the turn under way and queued messages are over
  signalbox sessions cancel SESSION         ends it now

${columns([
  ['--status STATUS', 'list: idle, running, waiting, completed, failed or cancelled'],
  ['--environment NAME', 'list: of this Environment'],
  ['--agent AGENT', 'list: of this Agent'],
  ['--limit N', 'list: at most so many (20)'],
  ['--all', 'watch: from the beginning of the Session'],
  ['--now', 'send: the turn under way is stopped, this message is next'],
  ...serviceHelp,
])}
Listing and watching need a key with read, the others one with write.
`;

const statuses = ['idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

export async function sessions([verb = '--help', ...args]: string[]): Promise<void> {
  if (verb === '--help') return void process.stdout.write(help);
  const command = `sessions ${verb}`;
  switch (verb) {
    case 'list':
      return list(command, args);
    case 'watch':
      return watch(command, args);
    case 'send':
      return send(command, args);
    case 'interrupt':
    case 'close':
    case 'cancel':
      return end(command, args, (client, sessionId) => client.sessions[verb](sessionId));
    default:
      throw new UsageError(`sessions: there is no "${verb}"`, 'sessions --help');
  }
}

async function list(command: string, args: string[]): Promise<void> {
  const { values } = parseCommand(command, 'sessions --help', args, [], {
    ...serviceOptions,
    status: { type: 'string' },
    environment: { type: 'string' },
    agent: { type: 'string' },
    limit: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const { environment, agent: agentId } = values;
  const status = statuses.find((one) => one === values.status);
  if (values.status !== undefined && !status)
    throw new UsageError(`${command}: --status is one of ${statuses.join(', ')}`, 'sessions --help');
  const client = serviceAt(values.url, command);
  const found = await firstOf(command, values.limit, (page) =>
    client.sessions.list({
      ...(status && { status }),
      ...(environment !== undefined && { environment }),
      ...(agentId !== undefined && { agentId }),
      ...page,
    }),
  );
  const nameOf = await agentNames(client, values.json ? [] : found.map(({ agentId: id }) => id));
  print(found, values.json, (all) => table(all.map((session) => rowOf(session, nameOf))));
}

function rowOf(session: Session, nameOf: (agentId: string) => string): string[] {
  const { sessionId, environment, agentId, turn, createdAt, error } = session;
  return [
    sessionId,
    stateOf(session),
    environment,
    nameOf(agentId),
    `turn ${turn}`,
    createdAt,
    error ? shown(error.message) : '',
  ];
}

function stateOf({ status, waitingFor, stopReason }: Session): string {
  if (waitingFor) {
    const { operationIds, toolCallIds, sessionIds } = waitingFor;
    const parts = [
      operationIds.length > 0 && `${operationIds.length} to approve`,
      toolCallIds.length > 0 && counted(toolCallIds.length, 'tool result'),
      sessionIds.length > 0 && counted(sessionIds.length, 'child Session'),
    ];
    return `waiting: ${parts.filter(Boolean).join(', ')}`;
  }
  return status === 'idle' && stopReason && stopReason !== 'endTurn' ? `idle: ${stopReason}` : status;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

async function send(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'sessions --help', args, ['SESSION', 'TEXT'], {
    ...serviceOptions,
    now: { type: 'boolean' },
  });
  if (values.help) return void process.stdout.write(help);
  const [sessionId = '', content = ''] = names;
  const client = serviceAt(values.url, command);
  const sent = await client.sessions.sendMessage(sessionId, { content, ...(values.now && { onBusy: 'steer' }) });
  process.stdout.write(
    values.json ? `${JSON.stringify(sent)}\n` : `Sent: ${sent.messageId}. It is ${stateOf(sent.session)}\n`,
  );
}

async function end(
  command: string,
  args: string[],
  act: (client: Signalbox, sessionId: string) => Promise<Session>,
): Promise<void> {
  const { values, names } = parseCommand(command, 'sessions --help', args, ['SESSION'], serviceOptions);
  if (values.help) return void process.stdout.write(help);
  const session = await act(serviceAt(values.url, command), names[0]!);
  process.stdout.write(values.json ? `${JSON.stringify(session)}\n` : `${session.sessionId} is ${stateOf(session)}\n`);
}

async function watch(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'sessions --help', args, ['SESSION'], {
    ...serviceOptions,
    all: { type: 'boolean' },
  });
  if (values.help) return void process.stdout.write(help);
  const client = serviceAt(values.url, command);
  const session = await client.sessions.get(names[0]!);
  const cursor = values.all || session.turn < 2 ? null : `turn_${session.turn}:seq_0`;
  const screen = new Screen();
  let wasLost = false;
  const onConnection = (state: 'open' | 'lost') => {
    if (state === 'lost') process.stderr.write('The service is away; trying again.\n');
    else if (wasLost) process.stderr.write('It is back.\n');
    wasLost = state === 'lost';
  };
  for await (const { chunks } of client.sessions.stream(session.sessionId, { cursor, onConnection })) {
    for (const chunk of chunks) {
      if (values.json) process.stdout.write(`${JSON.stringify(chunk)}\n`);
      else process.stdout.write(screen.show(chunk));
    }
  }
  if (!values.json) process.stdout.write(screen.line('The Session has ended.'));
}

/** What chunks look like: text as it comes, everything else on lines of its own. */
class Screen {
  #isInText = false;

  /** A line of its own, whatever stands before it. */
  line(text: string): string {
    const before = this.#isInText ? '\n' : '';
    this.#isInText = false;
    return `${before}${text}\n`;
  }

  show(chunk: Chunk): string {
    switch (chunk.type) {
      case 'message.chunk':
        this.#isInText = true;
        return shownLines(chunk.delta);
      case 'message.reset':
        return this.line('-- The model is asked again: what it said last does not hold.');
      case 'tool.call':
        return this.line(`${chunk.notRun ? '-x' : '->'} ${shown(chunk.tool)} ${shown(JSON.stringify(chunk.input))}`);
      case 'tool.result':
        return this.line(`<- ${resultOf(chunk)}`);
      case 'approval.requested':
        return this.line(
          `?  ${shown(chunk.name)} ${shown(JSON.stringify(chunk.input))}\n   signalbox approvals approve ${chunk.operationId}`,
        );
      case 'approval.resolved':
        return this.line(`!  ${chunk.decision}${chunk.reason === undefined ? '' : `: ${shown(chunk.reason)}`}`);
      case 'session.status':
        return this.line(`-- ${stateOf({ stopReason: null, ...chunk } as unknown as Session)}`);
      case 'turn.completed':
        return this.line(`-- turn ${chunk.turn} is over: ${chunk.stopReason}`);
      default:
        // Of a newer service.
        return '';
    }
  }
}

function resultOf({ output, error, outcomeUnknown }: Extract<Chunk, { type: 'tool.result' }>): string {
  const words = error === undefined ? shown(JSON.stringify(output)) : `error: ${shown(error)}`;
  return outcomeUnknown ? `${words} (whether it had its effect is not known)` : words;
}
