// `signalbox destinations …`: where records of the event log are sent.
import type { Destination, DestinationDelivery, EventTypePattern } from '@signalbox/client';
import { type Command, command, UsageError } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { printSecret } from '../signing-secret.ts';
import { type Column, statusStyle } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown, shownLines } from '../text.ts';
import { attemptText } from './webhooks.ts';

const destination = { destination: { about: 'the id of the destination' } } as const;
const writing = ['webhooks:write', 'sessions:read', 'events:read'] as const;
const again = (id: string) => `signalbox destinations rotate-secret ${id}`;

const list = command({
  name: 'list',
  summary: 'List destinations and whether they are healthy',
  options: {
    environment: { type: 'string', value: 'NAME', about: 'only those that name this environment' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['destinations list', 'where records are sent']],
  needs: ['agents:read'],
  operations: ['listDestinations'],
  run(input) {
    const client = serviceOf(input);
    const { environment } = input.values;
    return printList(input, (page) => client.destinations.list({ environment, ...page }), {
      id: ({ destinationId }) => destinationId,
      describe: (): Column<Destination>[] => [
        { header: 'DESTINATION', cell: ({ destinationId }) => destinationId },
        { header: 'NAME', cell: ({ name }) => shown(name) },
        { header: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
        { header: 'HEALTH', cell: ({ health }) => health.state, style: ({ health }) => statusStyle(health.state) },
        { header: 'EVENTS', cell: ({ eventTypes }) => eventTypes.join(','), shrinks: true },
        { header: 'URL', cell: ({ url }) => shown(url), shrinks: true, optional: true },
      ],
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show a destination, and what is wrong with it',
  arguments: destination,
  options: serviceOptions,
  examples: [['destinations get dst_01k9…', 'why nothing arrives']],
  needs: ['agents:read'],
  operations: ['getDestination'],
  async run(input) {
    const found = await serviceOf(input).destinations.get(input.args.destination);
    await printResult(input, found, () => printDestination(found, input.terminal));
  },
});

const changes = {
  events: {
    type: 'list',
    value: 'TYPE,TYPE',
    about: 'which records: types such as session.failed, groups such as approval.*, or *',
  },
  agents: { type: 'list', value: 'AGENT,AGENT', about: 'only records about these agents, by their ids' },
  header: {
    type: 'list',
    value: 'NAME=VARIABLE,…',
    about: 'headers for the receiver, each with the environment variable that has its value',
  },
} as const;

const create = command({
  name: 'create',
  summary: 'Send records of the event log to a URL from now on',
  details:
    'Prints the signing secret, once. With --secret-file, it is written to a new file that only you can read. Values of headers are read from environment variables, because arguments are visible to others.',
  arguments: { name: { about: 'a name for people' }, url: { about: 'where to send records' } },
  options: {
    ...changes,
    environment: { type: 'string', value: 'NAME', about: 'only records of this environment' },
    'secret-file': { type: 'string', value: 'PATH', about: 'write the signing secret to this new file' },
    ...serviceOptions,
  },
  examples: [
    ['destinations create "On call" https://example.com/alerts --events approval.requested,session.failed', 'alerts'],
    [
      'destinations create Audit https://example.com/audit --events "*" --header Authorization=AUDIT_AUTH',
      'with a key',
    ],
  ],
  needs: writing,
  operations: ['createDestination'],
  async run(input) {
    const { args, values, command: fullName } = input;
    const eventTypes = values.events as EventTypePattern[] | undefined;
    if (!eventTypes) throw new UsageError(`${fullName}: needs --events`, `${fullName} --help`);
    const client = serviceOf(input);
    const request = {
      ...{ name: args.name, type: 'webhook' as const, url: args.url, eventTypes },
      ...{ environment: values.environment, agentIds: values.agents, headers: headersOf(values.header, input) },
    };
    let id = '';
    const created = async () => {
      const result = await client.destinations.create(request);
      id = result.destination.destinationId;
      if (!values.json) await input.terminal.stderr.write(`Created ${id}.\n`);
      return result;
    };
    await printSecret(input, created, () => again(id));
  },
});

const update = command({
  name: 'update',
  summary: 'Change what a destination receives and where',
  details: 'Another host deletes the headers, unless --header gives new ones.',
  arguments: destination,
  options: {
    name: { type: 'string', value: 'NAME', about: 'another name' },
    to: { type: 'string', value: 'URL', about: 'where to send records' },
    ...changes,
    ...serviceOptions,
  },
  examples: [['destinations update dst_01k9… --events approval.*', 'send less']],
  needs: writing,
  operations: ['updateDestination'],
  async run(input) {
    const { name, to, events, agents, header } = input.values;
    const updated = await serviceOf(input).destinations.update(input.args.destination, {
      ...{ name, url: to, eventTypes: events, agentIds: agents, headers: headersOf(header, input) },
    });
    await printResult(input, updated, () => printDestination(updated, input.terminal));
  },
});

const pause = switching('pause', 'Pause a destination; records are kept and sent later', 'paused');
const resume = switching('resume', 'Resume a paused or disabled destination', 'enabled');

function switching(name: string, summary: string, status: 'paused' | 'enabled'): Command {
  return command({
    name,
    summary,
    arguments: destination,
    options: serviceOptions,
    examples: [[`destinations ${name} dst_01k9…`, `${name} a destination`]],
    needs: writing,
    operations: ['updateDestination'],
    async run(input) {
      const updated = await serviceOf(input).destinations.update(input.args.destination, { status });
      await printResult(input, updated, `${updated.destinationId} is ${updated.status}`);
    },
  });
}

const remove = command({
  name: 'delete',
  summary: 'Delete a destination',
  arguments: destination,
  options: serviceOptions,
  examples: [['destinations delete dst_01k9…', 'send nothing more to it']],
  needs: ['webhooks:write'],
  operations: ['deleteDestination'],
  async run(input) {
    const deleted = await serviceOf(input).destinations.delete(input.args.destination);
    await printResult(input, deleted, `deleted: ${input.args.destination}`);
  },
});

const testDelivery = command({
  name: 'test',
  summary: 'Send a signed, made-up record now, and show the response',
  details: 'The exit status is 1 if the destination did not accept it.',
  arguments: destination,
  options: serviceOptions,
  examples: [['destinations test dst_01k9…', 'whether the receiver verifies and accepts']],
  needs: writing,
  operations: ['testDestination'],
  async run(input) {
    const attempt = await serviceOf(input).destinations.test(input.args.destination);
    await printResult(input, attempt, attemptText(attempt));
    return attempt.error === null ? 0 : 1;
  },
});

const rotateSecret = command({
  name: 'rotate-secret',
  summary: 'Create a new signing secret and print it; the previous one stays valid for a while',
  arguments: destination,
  options: {
    'grace-seconds': { type: 'integer', about: 'how long the previous secret stays valid (86400); 0 if it has leaked' },
    'secret-file': { type: 'string', value: 'PATH', about: 'write the secret to this new file instead' },
    ...serviceOptions,
  },
  examples: [['destinations rotate-secret dst_01k9…', 'replace the secret within a day']],
  needs: writing,
  operations: ['rotateDestinationSecret'],
  async run(input) {
    const gracePeriodSeconds = input.values['grace-seconds'];
    const { destination: id } = input.args;
    const client = serviceOf(input);
    await printSecret(
      input,
      () => client.destinations.rotateSecret(id, { gracePeriodSeconds }),
      () => again(id),
    );
  },
});

const recover = command({
  name: 'recover',
  summary: 'Send records again, from a sequence number or a time on',
  arguments: destination,
  options: {
    sequence: { type: 'integer', about: 'the sequence number of the first record' },
    since: { type: 'time', about: 'records since this time' },
    ...serviceOptions,
  },
  examples: [
    ['destinations recover dst_01k9… --since 2h', 'after the receiver lost what it got'],
    ['destinations recover dst_01k9… --sequence 4210', 'from one record on'],
  ],
  needs: writing,
  operations: ['recoverDestination'],
  async run(input) {
    const { sequence, since } = input.values;
    const from = sequence ?? since;
    if (from === undefined || (sequence !== undefined && since !== undefined))
      throw new UsageError(`${input.command}: needs --sequence or --since`, `${input.command} --help`);
    const { destination: id } = input.args;
    const found = await serviceOf(input).destinations.recover(id, { from });
    await printResult(input, found, `The service sends them again. Progress: signalbox destinations deliveries ${id}`);
  },
});

const deliveries = command({
  name: 'deliveries',
  summary: 'List the deliveries to a destination, newest first',
  arguments: destination,
  options: {
    status: {
      type: 'string',
      choices: ['pending', 'succeeded', 'exhausted', 'cancelled'],
      about: 'only deliveries with this status',
    },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['destinations deliveries dst_01k9… --status exhausted', 'what the receiver never accepted']],
  needs: ['events:read'],
  operations: ['listDestinationDeliveries'],
  run(input) {
    const { status } = input.values;
    const client = serviceOf(input);
    return printList(input, (page) => client.destinations.deliveries(input.args.destination, { status, ...page }), {
      id: ({ deliveryId }) => deliveryId,
      describe: (): Column<DestinationDelivery>[] => [
        { header: 'DELIVERY', cell: ({ deliveryId }) => deliveryId },
        { header: 'STATUS', cell: (one) => one.status, style: (one) => statusStyle(one.status) },
        { header: 'ATTEMPTS', cell: ({ attemptCount }) => String(attemptCount), optional: true },
        { header: 'ABOUT', cell: ({ resource }) => shown(resource.id), shrinks: true },
        { header: 'RECORDS', cell: ({ eventCount }) => String(eventCount) },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal), optional: true },
      ],
    });
  },
});

const delivery = command({
  name: 'delivery',
  summary: 'Show a delivery to a destination with its attempts and its body',
  arguments: { ...destination, delivery: { about: 'the id of the delivery' } },
  options: serviceOptions,
  examples: [['destinations delivery dst_01k9… dsd_01k9…', 'what was sent, and what came back']],
  needs: ['events:read'],
  operations: ['getDestinationDelivery'],
  async run(input) {
    const { args, terminal } = input;
    const found = await serviceOf(input).destinations.delivery(args.destination, args.delivery);
    await printResult(input, found, () =>
      printRecord(terminal, [
        ['Delivery', found.deliveryId],
        ['Status', found.status],
        ['About', `${found.resource.type} ${shown(found.resource.id)}`],
        ['Records', `${found.eventCount}, from ${found.firstSequence} to ${found.lastSequence}`],
        ['Created', timeText(found.createdAt, terminal)],
        ['Next attempt', timeText(found.nextAttemptAt, terminal)],
        ['Attempts', found.attempts.map(attemptText).join('\n')],
        ['Body', shownLines(found.requestBody ?? '')],
      ]),
    );
  },
});

export const commands = [
  ...[list, get, create, update, pause, resume, remove, testDelivery, rotateSecret, recover],
  ...[deliveries, delivery],
];

/** Reads the value of each header from the variable that is given for it. */
function headersOf(
  given: readonly string[] | undefined,
  { terminal, command: fullName }: { terminal: Terminal; command: string },
): Record<string, string> | undefined {
  return (
    given &&
    Object.fromEntries(
      given.map((text) => {
        const at = text.indexOf('=');
        const variable = text.slice(at + 1);
        const value = at > 0 ? terminal.env[variable] : undefined;
        if (value === undefined) {
          throw new UsageError(
            `${fullName}: --header needs NAME=VARIABLE, and the environment variable must be set`,
            `${fullName} --help`,
          );
        }
        return [text.slice(0, at), value];
      }),
    )
  );
}

function printDestination(found: Destination, terminal: Terminal): Promise<void> {
  const { health } = found;
  return printRecord(terminal, [
    ['Destination', found.destinationId],
    ['Name', shown(found.name)],
    ['URL', shown(found.url)],
    ['Status', found.disabledReason ? `${found.status} (${found.disabledReason})` : found.status],
    ['Health', health.reason ? `${health.state}: ${shown(health.reason)}` : health.state],
    [
      'Last error',
      health.lastError && `${shown(health.lastError)}${health.lastStatus ? ` (${health.lastStatus})` : ''}`,
    ],
    ['Failing since', timeText(health.failingSince, terminal)],
    ['Next probe', timeText(health.nextProbeAt, terminal)],
    ['Lost', health.lostEvents && `records ${health.lostEvents.from} to ${health.lostEvents.to}`],
    ['Receives', found.eventTypes.join(', ')],
    ['Environment', found.environment ?? 'all'],
    ['Agents', found.agentIds?.join(', ') ?? 'all'],
    ['Headers', found.headerNames.join(', ')],
    ['Secret', `version ${found.secretVersion}`],
    ['Last success', timeText(found.lastSuccessAt, terminal)],
    ['Last failure', timeText(found.lastFailureAt, terminal)],
  ]);
}
