// `signalbox sessions list …`: finds, counts, exports, cancels and closes sessions by the same filters.
import { pipeline } from 'node:stream/promises';
import type { ListedSession, Signalbox } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { type Command, command, type Options, UsageError } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { connectionOptions, serviceOf, serviceOptions } from '../service.ts';
import { stateOf } from '../session-state.ts';
import { type Column, statusStyle } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const statuses = ['idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

const filters = {
  search: { type: 'string', value: 'WORDS', about: 'only sessions with these words, or the beginning of an id' },
  status: { type: 'string', value: 'STATUS', choices: statuses, about: 'only sessions with this status' },
  failed: { type: 'boolean', about: 'only sessions whose last turn failed, ended or not' },
  environment: { type: 'string', value: 'NAME', about: 'only this environment' },
  agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
  'end-user': { type: 'string', value: 'ID', about: 'only sessions for this end user' },
  since: { type: 'time', about: 'only sessions opened from this time on' },
  until: { type: 'time', about: 'only sessions opened before this time' },
  parent: { type: 'string', value: 'SESSION', about: 'only child sessions of this session' },
  'forked-from': { type: 'string', value: 'SESSION', about: 'only forks of this session' },
  drafts: { type: 'string', choices: ['only', 'none'], about: 'only sessions that run a draft, or none of them' },
  metadata: { type: 'string', value: 'KEY=VALUE', multiple: true, about: 'only sessions with this value' },
} as const satisfies Options;

interface Filters {
  search: string | undefined;
  status: (typeof statuses)[number] | undefined;
  failed: boolean | undefined;
  environment: string | undefined;
  agent: string | undefined;
  'end-user': string | undefined;
  since: string | undefined;
  until: string | undefined;
  parent: string | undefined;
  'forked-from': string | undefined;
  drafts: string | undefined;
  metadata: string[] | undefined;
}

function filtersIn(values: Filters, fullName: string) {
  return {
    q: values.search,
    status: values.status,
    hasError: values.failed,
    environment: values.environment,
    agentId: values.agent,
    endUserId: values['end-user'],
    since: values.since,
    until: values.until,
    parentSessionId: values.parent,
    forkedFromSessionId: values['forked-from'],
    draft: values.drafts === undefined ? undefined : values.drafts === 'only',
    metadata: values.metadata && metadataFilter(values.metadata, fullName),
  };
}

const order = { oldest: { type: 'boolean', about: 'oldest first' } } as const satisfies Options;

const list = command({
  name: 'list',
  summary: 'List sessions, newest first, or search them',
  options: { ...filters, ...order, ...listOptions, ...serviceOptions },
  examples: [
    ['sessions list --status waiting', 'sessions that wait for an approval or a tool result'],
    ['sessions list --search "damaged 1042" --since 7d', 'what customers wrote in the last week'],
    ['sessions list --metadata customer=17 --all --json', 'all sessions of a customer of yours, for a program'],
    ['sessions list --failed', 'why turns failed'],
  ],
  needs: ['sessions:read'],
  operations: ['listSessions'],
  run(input) {
    const { values, command: fullName } = input;
    const chosen = { ...filtersIn(values, fullName), order: values.oldest ? ('asc' as const) : undefined };
    const client = serviceOf(input);
    return printList(input, (page) => client.sessions.list({ ...chosen, ...page }), {
      id: ({ sessionId }) => sessionId,
      describe: describer(client, input.terminal),
    });
  },
});

function describer(client: Signalbox, terminal: Terminal) {
  const names = agentNames(client);
  return async (sessions: readonly ListedSession[]): Promise<Column<ListedSession>[]> => {
    await names.load(sessions.map(({ agentId }) => agentId));
    const agentOf = ({ agentId, draft }: ListedSession): string => {
      const name = names.of(agentId);
      if (!draft) return name;
      // A draft need not have an agent.
      return name === agentId ? 'draft' : `draft of ${name}`;
    };
    return [
      { header: 'SESSION', cell: ({ sessionId }) => sessionId },
      { header: 'STATUS', cell: stateOf, style: ({ status }) => statusStyle(status), shrinks: true },
      { header: 'AGENT', cell: agentOf, shrinks: true },
      { header: 'ENVIRONMENT', cell: ({ environment }) => environment, shrinks: true, optional: true },
      { header: 'TURN', cell: ({ turn }) => String(turn), optional: true },
      { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, terminal), optional: true },
      { header: 'FIRST MESSAGE', cell: ({ preview }) => shown(preview ?? ''), shrinks: true, optional: true },
      { header: 'ERROR', cell: ({ error }) => shown(error?.message ?? ''), shrinks: true, style: () => 'red' },
    ];
  };
}

function metadataFilter(pairs: readonly string[], fullName: string): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError(`${fullName}: --metadata must be KEY=VALUE`, `${fullName} --help`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

const count = command({
  name: 'count',
  summary: 'Count sessions, up to 10,000',
  options: { ...filters, ...serviceOptions },
  examples: [['sessions count --failed --since 24h', 'how many failed since yesterday']],
  needs: ['sessions:read'],
  operations: ['countSessions'],
  async run(input) {
    const found = await serviceOf(input).sessions.count(filtersIn(input.values, input.command));
    await printResult(input, found, `${found.count}${found.isExact ? '' : ' or more'}`);
  },
});

const exportSessions = command({
  name: 'export',
  summary: 'Export sessions, newest first, as JSON lines or CSV',
  options: {
    format: { type: 'string', choices: ['jsonl', 'csv'], about: 'csv is for spreadsheets (jsonl)' },
    ...filters,
    ...order,
    ...connectionOptions,
  },
  examples: [['sessions export --format csv --since 30d > sessions.csv', 'the last month, for a spreadsheet']],
  needs: ['sessions:read'],
  operations: ['exportSessions'],
  async run(input) {
    const { values, terminal, command: fullName } = input;
    const chosen = { ...filtersIn(values, fullName), order: values.oldest ? ('asc' as const) : undefined };
    const content = await serviceOf(input).sessions.download({ ...chosen, format: values.format });
    await pipeline(content, terminal.stdout.stream, { end: false });
  },
});

/** A command that changes all open sessions that match. */
function changing(name: 'cancel-many' | 'close-many', summary: string, done: string): Command {
  return command({
    name,
    summary,
    details: 'Needs at least one filter. Prints each session; repeating the command is harmless.',
    options: { ...filters, ...serviceOptions },
    examples: [[`sessions ${name} --status waiting --until 7d`, `${done} what has waited for a week`]],
    needs: ['sessions:run'],
    operations: [name === 'cancel-many' ? 'cancelSessions' : 'closeSessions'],
    async run(input) {
      const { values, terminal, command: fullName } = input;
      const chosen = filtersIn(values, fullName);
      if (Object.values(chosen).every((value) => value === undefined))
        throw new UsageError(`${fullName}: needs at least one filter`, `${fullName} --help`);
      const { sessions } = serviceOf(input);
      const changed = name === 'cancel-many' ? sessions.cancelMany(chosen) : sessions.closeMany(chosen);
      let failed = 0;
      for await (const one of changed) {
        if (one.error) failed += 1;
        const line = one.error ? `${one.sessionId}: ${shown(one.error.message)}` : `${one.sessionId} is ${one.status}`;
        await terminal.stdout.write(`${values.json ? JSON.stringify(one) : line}\n`);
      }
      return failed > 0 ? 1 : 0;
    },
  });
}

export const listCommands: readonly Command[] = [
  list,
  count,
  exportSessions,
  changing('cancel-many', 'Cancel all open sessions that match', 'cancel'),
  changing('close-many', 'Close all open sessions that match', 'close'),
];
