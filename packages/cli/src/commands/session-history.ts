// What happens and happened in a session: `signalbox sessions watch`, `messages`, `turns` and `chunks`.
import type { ChunkType, Message, Session, SessionTurn, Signalbox } from '@signalbox/client';
import { command } from '../command.ts';
import { listOptions, printList, printTexts, timeText } from '../print.ts';
import { Screen } from '../screen.ts';
import { connectionOptions, serviceOf, serviceOptions } from '../service.ts';
import { type Column, statusStyle } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';
import { partText } from './message-text.ts';

export const session = { session: { about: 'the id of the session, ses_…' } } as const;

export const watch = command({
  name: 'watch',
  summary: 'Show the current turn and what follows, until the session ends or you press Ctrl-C',
  arguments: session,
  options: {
    all: { type: 'boolean', about: 'start at the beginning of the session' },
    'until-idle': {
      type: 'boolean',
      about: 'end when the session is idle, too: when it has no work and waits for nothing',
    },
    ...serviceOptions,
  },
  examples: [
    ['sessions watch ses_01k9…', 'follow a session'],
    ['sessions watch ses_01k9… --until-idle', 'in a script: wait for the response'],
  ],
  needs: ['sessions:read'],
  operations: ['getSession', 'streamSession'],
  async run(input) {
    const { values, args, terminal } = input;
    const client = serviceOf(input);
    const found = await client.sessions.get(args.session);
    const cursor = values.all || found.turn < 2 || found.cursor === null ? null : `turn_${found.turn}:seq_0`;
    await watchSession(client, found, {
      cursor,
      json: values.json,
      untilIdle: values['until-idle'] ?? false,
      terminal,
    });
  },
});

interface Watching {
  cursor: string | null;
  json: boolean | undefined;
  /** Whether to stop when the session is idle, too. */
  untilIdle: boolean;
  terminal: Terminal;
}

/** Prints a session until it ends; reconnects if the service is unavailable. */
export async function watchSession(
  client: Signalbox,
  { sessionId, status, turn }: Session,
  { cursor, json, untilIdle, terminal }: Watching,
): Promise<void> {
  const { stdout } = terminal;
  const screen = new Screen();
  const onConnection = connectionLog(terminal);
  // A session without a message has no chunks.
  let isIdle = status === 'idle' && turn === 0;
  if (!isIdle || !untilIdle) {
    for await (const { chunks: found } of client.sessions.stream(sessionId, { cursor, onConnection })) {
      for (const chunk of found) {
        await stdout.write(json ? `${JSON.stringify(chunk)}\n` : screen.show(chunk));
        if (chunk.type === 'session.status') isIdle = chunk.status === 'idle';
      }
      if (isIdle && untilIdle) break;
    }
  }
  const end = isIdle
    ? `The session is idle. To continue: signalbox sessions chat ${sessionId}`
    : 'The session has ended.';
  if (!json) await stdout.write(screen.line(end));
}

/** Says on standard error that a stream was interrupted, and that it continues. */
export function connectionLog({ stderr }: Terminal): (state: 'open' | 'lost') => void {
  let wasLost = false;
  return (state) => {
    if (state === 'lost') void stderr.write('Connection lost; reconnecting.\n');
    else if (wasLost) void stderr.write('Reconnected.\n');
    wasLost = state === 'lost';
  };
}

export const messages = command({
  name: 'messages',
  summary: 'Print the transcript: messages, responses, tool calls and results, oldest first',
  arguments: session,
  options: {
    order: { type: 'string', choices: ['asc', 'desc'], about: 'desc: newest first' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [
    ['sessions messages ses_01k9… --all', 'read a conversation'],
    ['sessions messages ses_01k9… --all --json > transcript.jsonl', 'export it'],
  ],
  needs: ['sessions:read'],
  operations: ['listMessages'],
  run(input) {
    const { order } = input.values;
    const client = serviceOf(input);
    return printTexts(input, (page) => client.sessions.messages(input.args.session, { order, ...page }), {
      id: ({ messageId }) => messageId,
      text: (message) => messageText(message, input.terminal),
    });
  },
});

const roleStyles = { user: 'blue', assistant: 'green', tool: 'dim' } as const;

function messageText({ role, turn, content, createdAt }: Message, terminal: Terminal): string {
  const when = `${turn === null ? 'queued' : `turn ${turn}`}, ${timeText(createdAt, terminal)}`;
  const head = `${terminal.stdout.styled(roleStyles[role], role)} ${terminal.stdout.styled('dim', `(${when})`)}`;
  return `${head}\n${content.map((part) => `  ${partText(part).split('\n').join('\n  ')}\n`).join('')}`;
}

export const turns = command({
  name: 'turns',
  summary: 'List the turns of a session with their model calls and tool calls, newest first',
  arguments: session,
  options: { ...listOptions, ...serviceOptions },
  examples: [['sessions turns ses_01k9…', 'what took so long, and what it cost']],
  needs: ['sessions:read'],
  operations: ['listTurns'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.sessions.turns(input.args.session, page), {
      id: ({ turn }) => String(turn),
      describe: (): Column<SessionTurn>[] => [
        { header: 'TURN', cell: ({ turn }) => String(turn), isRight: true },
        { header: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
        { header: 'STOPPED BY', cell: ({ stopReason }) => stopReason ?? '' },
        { header: 'CALLS', cell: callsOf, shrinks: true },
        { header: 'TOKENS', cell: ({ usage }) => `${usage.inputTokens} in, ${usage.outputTokens} out` },
        { header: 'TIME', cell: durationOf, isRight: true },
        { header: 'STARTED', cell: ({ startedAt }) => timeText(startedAt, input.terminal), optional: true },
        { header: 'ERROR', cell: ({ error }) => shown(error?.message ?? ''), shrinks: true, style: () => 'red' },
      ],
    });
  },
});

/** `openai/gpt-6.1-terra, 2 lookup, refund`. */
function callsOf({ operations }: SessionTurn): string {
  const counts = new Map<string, number>();
  for (const { kind, name } of operations) if (kind !== 'approval') counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count > 1 ? `${count} ` : ''}${shown(name)}`).join(', ');
}

function durationOf({ startedAt, endedAt }: SessionTurn): string {
  return endedAt === null ? '' : `${((Date.parse(endedAt) - Date.parse(startedAt)) / 1000).toFixed(1)} s`;
}

export const chunks = command({
  name: 'chunks',
  summary: 'Print the stored chunks of a session as JSON, oldest first',
  arguments: session,
  options: {
    after: { type: 'string', value: 'CURSOR', about: 'only chunks after this cursor, such as turn_1:seq_15' },
    types: { type: 'list', value: 'TYPE,TYPE', about: 'only these types, such as turn.completed,tool.call' },
    ...connectionOptions,
  },
  examples: [['sessions chunks ses_01k9… --types turn.completed', 'how the turns ended']],
  needs: ['sessions:read'],
  operations: ['listChunks'],
  async run(input) {
    const { after: cursor, types } = input.values;
    const params = { cursor, types: types as ChunkType[] | undefined, limit: 1000 };
    for await (const { chunks: found } of serviceOf(input).sessions.chunks(input.args.session, params))
      await input.terminal.stdout.write(found.map((chunk) => `${JSON.stringify(chunk)}\n`).join(''));
  },
});
