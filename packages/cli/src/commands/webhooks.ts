// `signalbox webhooks …`: the webhook subscriptions of environments.
import type { ChunkType, ReceivedWebhook, WebhookAttempt, WebhookSubscription } from '@signalbox/client';
import { NotFoundError } from '@signalbox/client';
import { type Command, command, UsageError } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { printSecret } from '../signing-secret.ts';
import { type Column, statusStyle } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const environment = { environment: { about: 'the name of the environment' } } as const;
const again = (name: string) => `signalbox webhooks rotate-secret ${name}`;

const list = command({
  name: 'list',
  summary: 'List webhook subscriptions and whether they are healthy',
  options: { ...listOptions, ...serviceOptions },
  examples: [['webhooks list', 'the subscriptions of all environments']],
  needs: ['agents:read'],
  operations: ['listWebhookSubscriptions'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.webhookSubscriptions.list(page), {
      id: (subscription) => subscription.environment,
      describe: (): Column<WebhookSubscription>[] => [
        { header: 'ENVIRONMENT', cell: (one) => one.environment },
        { header: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
        { header: 'HEALTH', cell: ({ health }) => health.state, style: ({ health }) => statusStyle(health.state) },
        { header: 'URL', cell: ({ url }) => shown(url), shrinks: true },
        {
          header: 'LAST SUCCESS',
          cell: ({ lastSuccessAt }) => timeText(lastSuccessAt, input.terminal) || 'never',
          optional: true,
        },
      ],
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show the webhook subscription of an environment, and what is wrong with its destination',
  arguments: environment,
  options: serviceOptions,
  examples: [['webhooks get production', 'why nothing arrives']],
  needs: ['agents:read'],
  operations: ['getWebhookSubscription'],
  async run(input) {
    const found = await serviceOf(input).webhookSubscriptions.get(input.args.environment);
    await printResult(input, found, () => printSubscription(found, input.terminal));
  },
});

const set = command({
  name: 'set',
  summary: 'Create the webhook subscription of an environment, or change it',
  details:
    'A new subscription prints its signing secret, once. With --secret-file, the secret is written to a new file that only you can read.',
  arguments: {
    ...environment,
    url: { about: 'where to send webhooks; needed for a new subscription', optional: true },
  },
  options: {
    types: {
      type: 'list',
      value: 'TYPE,TYPE',
      about: 'what to send, such as turn.completed,approval.requested',
    },
    'secret-file': { type: 'string', value: 'PATH', about: 'write the signing secret to this new file' },
    ...serviceOptions,
  },
  examples: [
    ['webhooks set production https://example.com/hooks/signalbox', 'subscribe an environment'],
    ['webhooks set production --types turn.completed,session.status', 'send less'],
    ['webhooks set staging signalbox:test-receiver', 'try it with the built-in receiver'],
  ],
  needs: ['agents:read', 'webhooks:write'],
  operations: ['getWebhookSubscription', 'createWebhookSubscription', 'updateWebhookSubscription'],
  async run(input) {
    const { args, values, command: fullName } = input;
    const chunkTypes = values.types as ChunkType[] | undefined;
    const client = serviceOf(input);
    const existing = await client.webhookSubscriptions.get(args.environment).catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
    if (existing) {
      const change = { url: args.url, chunkTypes };
      const updated = await client.webhookSubscriptions.update(args.environment, change);
      return printResult(input, updated, () => printSubscription(updated, input.terminal));
    }
    if (args.url === undefined) throw new UsageError(`${fullName}: a new subscription needs URL`, `${fullName} --help`);
    const subscription = { environment: args.environment, url: args.url, chunkTypes };
    await printSecret(
      input,
      () => client.webhookSubscriptions.create(subscription),
      () => again(args.environment),
    );
  },
});

const pause = switching('pause', 'Pause a webhook subscription; chunks are kept and sent later', 'paused');
const resume = switching('resume', 'Resume a paused or disabled webhook subscription', 'enabled');

function switching(name: string, summary: string, status: 'paused' | 'enabled'): Command {
  return command({
    name,
    summary,
    arguments: environment,
    options: serviceOptions,
    examples: [[`webhooks ${name} production`, `${name} deliveries`]],
    needs: ['webhooks:write'],
    operations: ['updateWebhookSubscription'],
    async run(input) {
      const updated = await serviceOf(input).webhookSubscriptions.update(input.args.environment, { status });
      await printResult(input, updated, `${updated.environment} is ${updated.status}`);
    },
  });
}

const remove = command({
  name: 'delete',
  summary: 'Delete the webhook subscription of an environment',
  arguments: environment,
  options: serviceOptions,
  examples: [['webhooks delete staging', 'stop deliveries for good']],
  needs: ['webhooks:write'],
  operations: ['deleteWebhookSubscription'],
  async run(input) {
    const deleted = await serviceOf(input).webhookSubscriptions.delete(input.args.environment);
    await printResult(input, deleted, `deleted: ${input.args.environment}`);
  },
});

const testDelivery = command({
  name: 'test',
  summary: 'Send a signed test delivery now, and show the response',
  details: 'The exit status is 1 if the destination did not accept it.',
  arguments: environment,
  options: serviceOptions,
  examples: [['webhooks test production', 'whether the receiver verifies and accepts']],
  needs: ['webhooks:write'],
  operations: ['testWebhookSubscription'],
  async run(input) {
    const attempt = await serviceOf(input).webhookSubscriptions.test(input.args.environment);
    await printResult(input, attempt, attemptText(attempt));
    return attempt.error === null ? 0 : 1;
  },
});

const rotateSecret = command({
  name: 'rotate-secret',
  summary: 'Create a new signing secret and print it; the previous one stays valid for a while',
  arguments: environment,
  options: {
    'grace-seconds': { type: 'integer', about: 'how long the previous secret stays valid (86400); 0 if it has leaked' },
    'secret-file': { type: 'string', value: 'PATH', about: 'write the secret to this new file instead' },
    ...serviceOptions,
  },
  examples: [['webhooks rotate-secret production', 'replace the secret within a day']],
  needs: ['webhooks:write'],
  operations: ['rotateWebhookSecret'],
  async run(input) {
    const gracePeriodSeconds = input.values['grace-seconds'];
    const { environment: name } = input.args;
    const { webhookSubscriptions } = serviceOf(input);
    await printSecret(
      input,
      () => webhookSubscriptions.rotateSecret(name, { gracePeriodSeconds }),
      () => again(name),
    );
  },
});

const received = command({
  name: 'received',
  summary: 'List what the built-in test receiver has received, newest first',
  arguments: environment,
  options: { ...listOptions, ...serviceOptions },
  examples: [['webhooks received staging --json', 'with headers and bodies']],
  needs: ['sessions:read'],
  operations: ['listReceivedWebhooks'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.webhookSubscriptions.received(input.args.environment, page), {
      id: ({ deliveryId }) => deliveryId,
      describe: (): Column<ReceivedWebhook>[] => [
        { header: 'DELIVERY', cell: ({ deliveryId }) => deliveryId },
        { header: 'ATTEMPT', cell: ({ attempt }) => String(attempt), optional: true },
        {
          header: 'SIGNATURE',
          cell: ({ verified }) => (verified ? 'valid' : 'invalid'),
          style: ({ verified }) => (verified ? 'green' : 'red'),
        },
        { header: 'RECEIVED', cell: ({ receivedAt }) => timeText(receivedAt, input.terminal) },
        { header: 'BODY', cell: ({ body }) => shown(body.slice(0, 400)), shrinks: true },
      ],
    });
  },
});

const recover = command({
  name: 'recover',
  summary: 'Send chunks again: of all sessions since a time, or of one session after a cursor',
  arguments: environment,
  options: {
    since: { type: 'time', about: 'of all sessions since this time' },
    session: { type: 'string', value: 'SESSION', about: 'of this session, after --cursor' },
    cursor: { type: 'string', value: 'CURSOR', about: 'the last cursor that the receiver has, such as turn_1:seq_15' },
    ...serviceOptions,
  },
  examples: [
    ['webhooks recover production --since 2h', 'after an outage of the receiver'],
    ['webhooks recover production --session ses_01k9… --cursor turn_1:seq_15', 'one session'],
  ],
  needs: ['webhooks:write'],
  operations: ['recoverDeliveries'],
  async run(input) {
    const { since, session, cursor } = input.values;
    const isSession = session !== undefined && cursor !== undefined;
    if (isSession === (since !== undefined))
      throw new UsageError(`${input.command}: needs --since, or --session and --cursor`, `${input.command} --help`);
    const request = isSession ? { sessionId: session, cursor } : { since: since! };
    const { environment: name } = input.args;
    const subscription = await serviceOf(input).webhookSubscriptions.recover(name, request);
    await printResult(input, subscription, `The service sends them again. Progress: signalbox deliveries list ${name}`);
  },
});

export const commands = [list, get, set, pause, resume, remove, testDelivery, rotateSecret, received, recover];

export function attemptText({ attempt, at, durationMs, status, error, responseBody }: WebhookAttempt): string {
  const result = error === null ? `accepted with ${status}` : `failed: ${shown(error)}${status ? `, ${status}` : ''}`;
  const body = responseBody ? `\n  ${shown(responseBody.slice(0, 400))}` : '';
  return `attempt ${attempt} at ${at}: ${result} (${durationMs} ms)${body}`;
}

function printSubscription(found: WebhookSubscription, terminal: Terminal): Promise<void> {
  const { health } = found;
  return printRecord(terminal, [
    ['Environment', found.environment],
    ['URL', shown(found.url)],
    ['Status', found.disabledReason ? `${found.status} (${found.disabledReason})` : found.status],
    ['Health', health.reason ? `${health.state}: ${shown(health.reason)}` : health.state],
    [
      'Last error',
      health.lastError && `${shown(health.lastError)}${health.lastStatus ? ` (${health.lastStatus})` : ''}`,
    ],
    ['Failing since', timeText(health.failingSince, terminal)],
    ['Next probe', timeText(health.nextProbeAt, terminal)],
    ['Sends', found.chunkTypes.join(', ')],
    ['Secret', `version ${found.secretVersion}`],
    ['Last success', timeText(found.lastSuccessAt, terminal)],
    ['Last failure', timeText(found.lastFailureAt, terminal)],
  ]);
}
