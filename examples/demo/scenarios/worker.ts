// An agent without a model: its loop is this program's own code, which could just as well be an agent you already have.
// The program claims the agent's turns. Signalbox provides the journal, the stream, the approvals and the tools.
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
        description: 'Refunds an order in full or in part.',
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

/** The loop. Like a model, it decides from the transcript alone, so after a crash it continues where it was. */
async function onTurn(turn: Turn): Promise<void> {
  while (true) {
    const { text, refund } = think(turn.messages);
    await turn.append(text);
    if (!refund) return;
    // Settles once the approval is decided, however long that takes. A denial is a result in the transcript as well.
    await Promise.allSettled([turn.callTool('refund_order', refund)]);
  }
}

/** A stand-in for your own agent: takes the transcript so far, returns what to do next. */
function think(messages: readonly Message[]): { text: string; refund?: { orderId: string; amount: number } } {
  const [part] = messages.at(-1)?.content ?? [];
  if (part?.type === 'tool_result')
    return {
      text: part.error === undefined ? `All done. ${part.output}` : `I was not allowed to refund it. ${part.error}`,
    };
  const [, orderId, amount] = /order (\d+) \((\d+\.\d\d) EUR\)/.exec(part?.type === 'text' ? part.text : '') ?? [];
  if (!orderId) return { text: 'Which order is it, and how much did it cost?' };
  return {
    text: `I will refund ${amount} EUR for order ${orderId}, and ask a colleague to approve it first.`,
    refund: { orderId, amount: Number(amount) },
  };
}
