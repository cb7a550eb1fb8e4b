// `signalbox deliveries …`: what was sent to a webhook subscription, and what its destination responded.
import type { WebhookDelivery } from '@signalbox/client';
import { command } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, statusStyle } from '../table.ts';
import { shownLines } from '../text.ts';
import { attemptText } from './webhooks.ts';

const environment = { environment: { about: 'the name of the environment' } } as const;
const delivery = { ...environment, delivery: { about: 'the id of the delivery' } } as const;

const list = command({
  name: 'list',
  summary: 'List the webhook deliveries of an environment, newest first',
  arguments: environment,
  options: {
    status: {
      type: 'string',
      choices: ['pending', 'succeeded', 'exhausted', 'cancelled'],
      about: 'only deliveries with this status',
    },
    session: { type: 'string', value: 'SESSION', about: 'only this session' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['deliveries list production --status exhausted', 'what the receiver never accepted']],
  needs: ['sessions:read'],
  operations: ['listDeliveries'],
  run(input) {
    const { status, session: sessionId } = input.values;
    const client = serviceOf(input);
    const listPage = (page: { limit: number }) =>
      client.webhookSubscriptions.deliveries.list(input.args.environment, { status, sessionId, ...page });
    return printList(input, listPage, {
      id: ({ deliveryId }) => deliveryId,
      describe: (): Column<WebhookDelivery>[] => [
        { header: 'DELIVERY', cell: ({ deliveryId }) => deliveryId },
        { header: 'STATUS', cell: (one) => one.status, style: (one) => statusStyle(one.status) },
        { header: 'ATTEMPTS', cell: ({ attemptCount }) => String(attemptCount), optional: true },
        { header: 'SESSION', cell: (one) => one.sessionId },
        { header: 'CURSOR', cell: ({ cursor }) => cursor, optional: true },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal), optional: true },
      ],
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show a webhook delivery with its attempts and its body',
  arguments: delivery,
  options: serviceOptions,
  examples: [['deliveries get production whd_01k9…', 'what was sent, and what came back']],
  needs: ['sessions:read'],
  operations: ['getDelivery'],
  async run(input) {
    const { args, terminal } = input;
    const found = await serviceOf(input).webhookSubscriptions.deliveries.get(args.environment, args.delivery);
    await printResult(input, found, () =>
      printRecord(terminal, [
        ['Delivery', found.deliveryId],
        ['Status', found.status],
        ['Session', found.sessionId],
        ['Cursor', found.cursor],
        ['Created', timeText(found.createdAt, terminal)],
        ['Next attempt', timeText(found.nextAttemptAt, terminal)],
        ['Attempts', found.attempts.map(attemptText).join('\n')],
        ['Body', shownLines(found.requestBody ?? '')],
      ]),
    );
  },
});

const resend = command({
  name: 'resend',
  summary: 'Send a webhook delivery again, with the same id and bytes',
  arguments: delivery,
  options: serviceOptions,
  examples: [['deliveries resend production whd_01k9…', 'retry one delivery now']],
  needs: ['webhooks:write'],
  operations: ['resendDelivery'],
  async run(input) {
    const { args } = input;
    const sent = await serviceOf(input).webhookSubscriptions.deliveries.resend(args.environment, args.delivery);
    await printResult(input, sent, `The service sends ${sent.deliveryId} again.`);
  },
});

export const commands = [list, get, resend];
