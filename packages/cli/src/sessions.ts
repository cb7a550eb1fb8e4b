// `signalbox sessions …`: lists, watches and controls sessions from a terminal.
import type { Chunk, Session, Signalbox } from '@signalbox/client';
import { agentNames, firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, shownLines, table, UsageError } from './usage.ts';

const help = `Lists, watches and controls sessions.

  signalbox sessions list                   list sessions, newest first
  signalbox sessions watch SESSION          show the current turn and what follows, until the session ends or you press Ctrl-C
  signalbox sessions send SESSION TEXT      send a message; it waits for the current turn to end
  signalbox sessions fork SESSION           open a session that continues this one after one of its turns
  signalbox sessions interrupt SESSION      stop the current turn
  signalbox sessions retry SESSION          continue the last turn, if it failed
  signalbox sessions compact SESSION        summarise the messages of an idle session for its model
  signalbox sessions close SESSION          complete the session after the current turn and queued messages
  signalbox sessions cancel SESSION         end the session now

${columns([
  ['--status STATUS', 'list: idle, running, waiting, completed, failed or cancelled'],
  ['--environment NAME', 'list: only this environment'],
  ['--agent AGENT', 'list: only this agent'],
  ['--end-user ID', 'list: only sessions for this end user'],
  ['--limit N', 'list: at most N (20)'],
  ['--all', 'watch: start at the beginning of the session'],
  ['--at-turn N', 'fork: the last turn that it inherits; 0: none (the last finished turn)'],
  ['--input TEXT', 'fork: the next message'],
  ['--agent-version N', 'fork: always use this version of the agent'],
  ['--now', 'send: stop the current turn and continue with this message'],
  ...serviceHelp,
])}
Listing and watching need a key with read, all others a key with write.
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
    case 'fork':
      return fork(command, args);
    case 'interrupt':
    case 'retry':
    case 'compact':
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
    'end-user': { type: 'string' },
    limit: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const { environment, agent: agentId, 'end-user': endUserId } = values;
  const status = statuses.find((one) => one === values.status);
  if (values.status !== undefined && !status)
    throw new UsageError(`${command}: --status must be one of ${statuses.join(', ')}`, 'sessions --help');
  const client = serviceAt(values.url, command);
  const found = await firstOf(command, values.limit, (page) =>
    client.sessions.list({
      ...(status && { status }),
      ...(environment !== undefined && { environment }),
      ...(agentId !== undefined && { agentId }),
      ...(endUserId !== undefined && { endUserId }),
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
    const { type, operationIds, toolCallIds, sessionIds, retryAt, error } = waitingFor;
    if (type === 'model')
      return `waiting: model unavailable, retry at ${retryAt}${error ? ` (${shown(error.message)})` : ''}`;
    const parts = [
      operationIds.length > 0 && `${operationIds.length} to approve`,
      toolCallIds.length > 0 && counted(toolCallIds.length, 'tool result'),
      sessionIds.length > 0 && counted(sessionIds.length, 'child session'),
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
    values.json ? `${JSON.stringify(sent)}\n` : `Sent ${sent.messageId}. The session is ${stateOf(sent.session)}\n`,
  );
}

async function fork(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'sessions --help', args, ['SESSION'], {
    ...serviceOptions,
    'at-turn': { type: 'string' },
    'agent-version': { type: 'string' },
    input: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const { input } = values;
  const [sessionId = ''] = names;
  const atTurn = wholeNumber(command, '--at-turn', values['at-turn']);
  const agentVersion = wholeNumber(command, '--agent-version', values['agent-version']);
  const session = await serviceAt(values.url, command).sessions.fork(sessionId, {
    ...(atTurn !== undefined && { atTurn }),
    ...(agentVersion !== undefined && { agentVersion }),
    ...(input !== undefined && { input }),
  });
  process.stdout.write(
    values.json
      ? `${JSON.stringify(session)}\n`
      : `Opened ${session.sessionId}, which continues ${sessionId} after turn ${session.forkedFrom!.turn}. It is ${stateOf(session)}\n`,
  );
}

function wholeNumber(command: string, option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${command}: ${option} must be a whole number`, 'sessions --help');
  return Number(text);
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
  const cursor = values.all || session.turn < 2 || session.cursor === null ? null : `turn_${session.turn}:seq_0`;
  const screen = new Screen();
  let wasLost = false;
  const onConnection = (state: 'open' | 'lost') => {
    if (state === 'lost') process.stderr.write('Connection lost; reconnecting.\n');
    else if (wasLost) process.stderr.write('Reconnected.\n');
    wasLost = state === 'lost';
  };
  for await (const { chunks } of client.sessions.stream(session.sessionId, { cursor, onConnection })) {
    for (const chunk of chunks) {
      if (values.json) process.stdout.write(`${JSON.stringify(chunk)}\n`);
      else process.stdout.write(screen.show(chunk));
    }
  }
  if (!values.json) process.stdout.write(screen.line('The session has ended.'));
}

/** Formats chunks: text as it arrives, everything else on separate lines. */
class Screen {
  #isInText = false;
  /** The reasoning or the input that is being shown. */
  #part: string | undefined;

  /** A separate line, after a line break if text was printed before it. */
  line(text: string): string {
    const before = this.#isInText ? '\n' : '';
    this.#isInText = false;
    this.#part = undefined;
    return `${before}${text}\n`;
  }

  /** Text of another kind, after `mark`. It continues on its line until something else follows. */
  #aside(mark: string, delta: string, part = mark): string {
    const begins = this.#part !== part;
    const before = begins ? `${this.#isInText ? '\n' : ''}${mark}` : '';
    this.#isInText = true;
    this.#part = part;
    return `${before}${shownLines(delta)}`;
  }

  show(chunk: Chunk): string {
    switch (chunk.type) {
      case 'message.chunk': {
        const before = this.#part === undefined ? '' : '\n';
        this.#part = undefined;
        this.#isInText = true;
        return `${before}${shownLines(chunk.delta)}`;
      }
      case 'reasoning.chunk':
        return this.#aside('~  ', chunk.delta);
      case 'tool.input.chunk':
        return this.#aside(`.. ${shown(chunk.toolName)} `, chunk.delta, chunk.toolCallId);
      case 'message.reset':
        return this.line('-- Ignore the text since the last line: it is void.');
      case 'tool.call':
        return this.line(`${chunk.notRun ? '-x' : '->'} ${shown(chunk.tool)} ${shown(JSON.stringify(chunk.input))}`);
      case 'tool.result':
        return this.line(`<- ${resultOf(chunk)}`);
      case 'approval.requested':
        return this.line(
          `?  ${shown(chunk.name)} ${shown(JSON.stringify(chunk.input))}\n   signalbox approvals approve ${chunk.operationId}`,
        );
      case 'approval.decided':
        return this.line(`!  ${chunk.progress.approved} of ${chunk.progress.required} approvals`);
      case 'approval.resolved':
        return this.line(`!  ${chunk.decision}${chunk.reason === undefined ? '' : `: ${shown(chunk.reason)}`}`);
      case 'session.status':
        return this.line(`-- ${stateOf({ stopReason: null, ...chunk } as unknown as Session)}`);
      case 'context.compacted': {
        const { untilTurn, tokensBefore, tokensAfter, summary } = chunk;
        const before = `-- summarised the messages up to turn ${untilTurn}: ${tokensBefore} -> ${tokensAfter} tokens`;
        return this.line(`${before}${summary === '' ? '' : `\n   ${shown(summary)}`}`);
      }
      case 'turn.completed':
        return this.line(
          `-- turn ${chunk.turn} ended: ${chunk.error ? errorOf(chunk.error) : chunk.stopReason} (${tokensOf(chunk.usage)})`,
        );
      case 'file.created':
        return this.line(`+  ${chunk.file.fileId} ${chunk.file.mediaType}, ${counted(chunk.file.bytes, 'byte')}`);
      default:
        // A chunk type of a newer service.
        return '';
    }
  }
}

/** `1200 tokens in (800 cached, 100 written to the cache), 50 out`. */
function tokensOf({ inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 }: Session['usage']): string {
  const cache = [
    cachedTokens > 0 && `${cachedTokens} cached`,
    cacheWriteTokens > 0 && `${cacheWriteTokens} written to the cache`,
  ].filter((part) => part !== false);
  return `${inputTokens} tokens in${cache.length > 0 ? ` (${cache.join(', ')})` : ''}, ${outputTokens} out`;
}

function errorOf({ code, message }: NonNullable<Session['error']>): string {
  return `${shown(code)}: ${shown(message)}`;
}

function resultOf({ output, error, outcomeUnknown }: Extract<Chunk, { type: 'tool.result' }>): string {
  const words = error === undefined ? shown(JSON.stringify(output)) : `error: ${shown(error)}`;
  return outcomeUnknown ? `${words} (it is not known whether the call had an effect)` : words;
}
