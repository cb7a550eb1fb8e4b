// An Agent without a model: its loop is this program's own code, which could as well be an agent that you have already.
// It claims the Agent's turns, and gets the journal, the stream, approvals and tools of the service for them.
import { randomBytes } from 'node:crypto';
import { type Session, ToolDeniedError, type Turn } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

export async function worker(stage: Stage): Promise<Session> {
  const { client, shop, signal } = stage;
  const queue = `demo-${randomBytes(4).toString('hex')}`;
  const agent = await stage.createAgent({
    name: 'Refund desk',
    model: { provider: 'worker', queue },
    tools: [
      {
        type: 'http',
        name: 'refund_order',
        description: 'Gives a customer money back for an order.',
        inputSchema: {
          type: 'object',
          properties: { orderId: { type: 'string' }, amount: { type: 'number', exclusiveMinimum: 0 } },
          required: ['orderId', 'amount'],
        },
        request: {
          method: 'POST',
          url: `${shop.url}/refunds`,
          body: { orderId: '{{input.orderId}}', amount: '{{input.amount}}' },
        },
      },
    ],
  });

  const over = new AbortController();
  const working = client.workers.run({ queue, onTurn, signal: AbortSignal.any([signal, over.signal]) });
  try {
    const session = await stage.converse(agent, 'My order 1042 (42.50 EUR) arrived damaged. Please refund it.');
    row('refunds', shop.accounts);
    return session;
  } finally {
    over.abort();
    await working;
  }
}

/** The loop: no model in it, but there might be one, and anything else. */
async function onTurn(turn: Turn): Promise<void> {
  // A program that was stopped in the middle of a turn gets it again: the transcript says how far it came.
  const [last] = turn.messages.at(-1)?.content ?? [];
  if (last?.type === 'tool_result') return void turn.append(`It came to this: ${last.error ?? last.output}`);

  const [, orderId, amount] = /order (\d+) \((\d+\.\d\d) EUR\)/.exec(last?.type === 'text' ? last.text : '') ?? [];
  if (!orderId) return void turn.append('Which order is it, and how much was it?');

  turn.append(`I will have ${amount} EUR for order ${orderId} refunded, and ask a colleague first.`);
  try {
    // Resolves when a person has approved it and it has run, however long that takes.
    const receipt = await turn.callTool<string>('refund_order', { orderId, amount: Number(amount) });
    turn.append(`It is done. ${receipt}`);
  } catch (error) {
    if (!(error instanceof ToolDeniedError)) throw error;
    turn.append(`I may not do it. ${error.message}`);
  }
}
