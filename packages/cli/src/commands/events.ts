// `signalbox events …`: reads, exports and verifies the event log.
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import {
  type Event,
  type EventCheckpoint,
  type EventFilters,
  type EventTypePattern,
  type EventVerification,
  verifyEvents,
} from '@signalbox/client';
import { CommandError, command, type Options, UsageError } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { connectionOptions, serviceOf, serviceOptions } from '../service.ts';
import { type Column, Table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { padEnd, shown } from '../text.ts';

const verify = command({
  name: 'verify',
  summary: 'Verify that no record of the event log was changed, removed, duplicated or inserted',
  details: 'The exit status is 0 if the log is intact. Otherwise it is 1, and the first wrong record is printed.',
  options: {
    file: { type: 'string', value: 'FILE', about: 'verify an export (format jsonl) instead; - is standard input' },
    checkpoint: {
      type: 'string',
      value: 'SEQUENCE:HASH',
      about: 'a record that must still be in the log, as printed by an earlier verification',
    },
    ...serviceOptions,
  },
  examples: [
    ['events verify --url https://signalbox.example.com', 'verify the log of a service'],
    ['events verify --file events.jsonl', 'verify an export'],
  ],
  needs: ['events:read'],
  operations: ['exportEvents'],
  async run(input) {
    const { values, terminal } = input;
    const checkpoint = values.checkpoint === undefined ? undefined : checkpointIn(values.checkpoint);
    const found =
      values.file === undefined
        ? await serviceOf(input, ' or use --file').events.verify({ checkpoint })
        : await verifyEvents(linesOf(values.file, terminal), { checkpoint });
    if (values.json) await terminal.stdout.write(`${JSON.stringify(found)}\n`);
    else if (found.ok) await terminal.stdout.write(praise(found));
    else await terminal.stderr.write(`signalbox: ${complaint(found, values.file)}\n`);
    return found.ok ? 0 : 1;
  },
});

const filters = {
  type: {
    type: 'list',
    value: 'TYPE,TYPE',
    about: 'only these types, such as session.failed, or approval.* for a group',
  },
  actor: { type: 'string', value: 'ID', about: 'only what this key or user did' },
  resource: { type: 'string', value: 'ID', about: 'only what happened to this' },
  session: { type: 'string', value: 'SESSION', about: 'only this session' },
  agent: { type: 'string', value: 'AGENT', about: 'only what is about this agent' },
  environment: { type: 'string', value: 'NAME', about: 'only this environment' },
  since: { type: 'time', about: 'only from this time on' },
  until: { type: 'time', about: 'only before this time' },
  'after-sequence': { type: 'integer', about: 'only records after this one' },
} as const satisfies Options;

const list = command({
  name: 'list',
  summary: 'List the records of the event log, newest first',
  options: { ...filters, ...listOptions, ...serviceOptions },
  examples: [
    ['events list --type session.failed --since 24h', 'what failed since yesterday'],
    ['events list --resource agt_01k9…', 'who changed an agent'],
  ],
  needs: ['events:read'],
  operations: ['listEvents'],
  run(input) {
    const client = serviceOf(input);
    const chosen = filtersIn(input.values);
    return printList(input, (page) => client.events.list({ ...chosen, ...page }), {
      id: ({ eventId }) => eventId,
      describe: () => columns(input.terminal),
    });
  },
});

const follow = command({
  name: 'follow',
  summary: 'Print new records of the event log as they are written, until Ctrl-C',
  options: { ...filters, ...serviceOptions },
  examples: [['events follow --type approval.requested --json', 'for a program that reacts to approvals']],
  needs: ['events:read'],
  operations: ['listEvents'],
  async run(input) {
    const { values, terminal } = input;
    const client = serviceOf(input);
    const chosen = filtersIn(values);
    const isChosen = chosen.afterSequence !== undefined || chosen.since !== undefined;
    const newest = isChosen ? undefined : (await client.events.list({ limit: 1 })).data[0];
    const afterSequence = chosen.afterSequence ?? newest?.sequence;
    const table = new Table(terminal.stdout, columns(terminal, true));
    for await (const event of client.events.follow({ ...chosen, afterSequence })) {
      if (values.json) await terminal.stdout.write(`${JSON.stringify(event)}\n`);
      else await table.print([event]);
    }
  },
});

const get = command({
  name: 'get',
  summary: 'Show a record of the event log with what changed',
  arguments: { event: { about: 'the id of the record, evt_…' } },
  options: serviceOptions,
  examples: [['events get evt_01k9…', 'before and after']],
  needs: ['events:read'],
  operations: ['getEvent'],
  async run(input) {
    const found = await serviceOf(input).events.get(input.args.event);
    const changes = Object.entries(found.changes ?? {}).map(
      ([field, [before, after]]) => `${shown(field)}: ${jsonText(before)} -> ${jsonText(after)}`,
    );
    await printResult(input, found, () =>
      printRecord(input.terminal, [
        ['Event', `${found.eventId}, record ${found.sequence}`],
        ['Type', found.type],
        ['Outcome', found.outcome],
        ['Time', timeText(found.occurredAt, input.terminal)],
        [
          'Actor',
          `${shown(found.actor.name)} (${found.actor.type}${found.actor.id ? `, ${shown(found.actor.id)}` : ''})`,
        ],
        ['Resource', `${found.resource.type} ${shown(found.resource.id)}`],
        ['Environment', found.environment],
        ['Session', found.sessionId],
        ['Agent', found.agentId ?? null],
        ['Changes', changes.join('\n')],
        ['Hash', found.hash],
      ]),
    );
  },
});

const exportLog = command({
  name: 'export',
  summary: 'Export the event log, oldest record first, as JSON lines or CSV',
  details: 'Without filters, `signalbox events verify --file` can verify an export in JSON lines.',
  options: {
    format: { type: 'string', choices: ['jsonl', 'csv'], about: 'csv is for spreadsheets (jsonl)' },
    ...filters,
    ...connectionOptions,
  },
  examples: [
    ['events export > events.jsonl', 'all of it, for an archive'],
    ['events export --format csv --since 30d > events.csv', 'the last month, for a spreadsheet'],
  ],
  needs: ['events:read'],
  operations: ['exportEvents'],
  async run(input) {
    const { values, terminal } = input;
    const content = await serviceOf(input).events.download({ ...filtersIn(values), format: values.format });
    await pipeline(content, terminal.stdout.stream, { end: false });
  },
});

export const commands = [list, follow, get, exportLog, verify];

type Filters = {
  type: string[] | undefined;
  actor: string | undefined;
  resource: string | undefined;
  session: string | undefined;
  agent: string | undefined;
  environment: string | undefined;
  since: string | undefined;
  until: string | undefined;
  'after-sequence': number | undefined;
};

function filtersIn(values: Filters): EventFilters {
  return {
    type: values.type as EventTypePattern[] | undefined,
    actorId: values.actor,
    resourceId: values.resource,
    sessionId: values.session,
    agentId: values.agent,
    environment: values.environment,
    since: values.since,
    until: values.until,
    afterSequence: values['after-sequence'],
  };
}

/** `isEndless`: widths for rows that are still to come. */
function columns(terminal: Terminal, isEndless = false): Column<Event>[] {
  const pad = (text: string, width: number) => (isEndless ? padEnd(text, width) : text);
  return [
    { header: 'TIME', cell: ({ occurredAt }) => (isEndless ? occurredAt : timeText(occurredAt, terminal)) },
    { header: 'TYPE', cell: ({ type }) => pad(type, 24) },
    {
      header: 'OUTCOME',
      cell: ({ outcome }) => pad(outcome, 7),
      style: ({ outcome }) => (outcome === 'success' ? undefined : 'red'),
    },
    { header: 'ACTOR', cell: ({ actor }) => pad(shown(actor.name), 16), shrinks: true },
    { header: 'RESOURCE', cell: ({ resource }) => shown(resource.id), shrinks: true },
    { header: 'EVENT', cell: ({ eventId }) => eventId, optional: true },
  ];
}

function jsonText(value: unknown): string {
  return shown(JSON.stringify(value) ?? 'none');
}

function checkpointIn(text: string): EventCheckpoint {
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined) {
    const problem = 'events verify: --checkpoint must be SEQUENCE:HASH, with a hash of 64 lowercase hexadecimal digits';
    throw new UsageError(problem, 'events verify --help');
  }
  return { sequence: Number(sequence), hash };
}

async function* linesOf(file: string, { stdin }: Terminal): AsyncGenerator<string> {
  let rest = '';
  try {
    const input = (file === '-' ? stdin : createReadStream(file)).setEncoding('utf8');
    for await (const piece of input as AsyncIterable<string>) {
      // Only at line feeds: node:readline would also split at U+2028, which can occur in a record's text.
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } catch (error) {
    throw new CommandError(`--file ${file} can't be read: ${(error as Error).message}`);
  }
  if (rest !== '') yield rest;
}

function praise({ count, first, last }: Extract<EventVerification, { ok: true }>): string {
  if (!first || !last) return 'There are no records.\n';
  const range = first.sequence === last.sequence ? `${first.sequence}` : `${first.sequence} to ${last.sequence}`;
  const records = count === 1 ? '1 record' : `${count} records`;
  return `The log is intact: ${records}, ${range}.\nCheckpoint: ${last.sequence}:${last.hash}\n`;
}

function complaint(
  { count, eventId, problem, detail }: Extract<EventVerification, { ok: false }>,
  file?: string,
): string {
  const place = file === undefined || problem === 'cut_short' ? '' : `line ${count + 1} of ${file}: `;
  const hints: Partial<Record<typeof problem, string>> = {
    not_a_record: ' Only an export with format=jsonl can be verified.',
    records_missing: ' An export with filters is not a complete chain.',
  };
  const hint = file === undefined ? '' : (hints[problem] ?? '');
  return `${place}${problem}: ${detail}${eventId ? ` (${eventId})` : ''}${hint} The ${count} records before it are intact.`;
}
