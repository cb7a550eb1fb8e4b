// An Agent without a model: its loop is this program's own code, which could as well be an agent that you have already.
// It claims the Agent's turns, and gets the journal, the stream, approvals and tools of the service for them.
import { randomBytes } from 'node:crypto';
import type { Message, Session, Turn } from '@signalbox/client';
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

/** The loop. It decides from the transcript alone, as a model does: begun again after a crash, it goes on from there. */
async function onTurn(turn: Turn): Promise<void> {
  while (true) {
    const { text, refund } = think(turn.messages);
    await turn.append(text);
    if (!refund) return;
    // Over when a person has decided, however long that takes. A denial is a result too, which the transcript then holds.
    await Promise.allSettled([turn.callTool('refund_order', refund)]);
  }
}

/** Stands for your own agent: from what was said and done to what comes next. */
function think(messages: readonly Message[]): { text: string; refund?: { orderId: string; amount: number } } {
  const [part] = messages.at(-1)?.content ?? [];
  if (part?.type === 'tool_result')
    return { text: part.error === undefined ? `It is done. ${part.output}` : `I may not do it. ${part.error}` };
  const [, orderId, amount] = /order (\d+) \((\d+\.\d\d) EUR\)/.exec(part?.type === 'text' ? part.text : '') ?? [];
  if (!orderId) return { text: 'Which order is it, and how much was it?' };
  return {
    text: `I will have ${amount} EUR for order ${orderId} refunded, and ask a colleague first.`,
    refund: { orderId, amount: Number(amount) },
  };
}
