// The main job, told by the client: a Session opens, streams, asks, acts, ends; its webhooks and records follow.
import type { Chunk, Event, Session } from '@signalbox/client';
import { order, type Setting } from './setting.ts';
import type { Received, Shop } from './shop.ts';
import { compact, confirm, heading, line, row, Stream, styled, table } from './terminal.ts';

/** A delivery waits 100 ms for more text at most; this is for a machine that is busy with other things. */
const WEBHOOKS_MAX_MS = 15_000;

export interface Asking {
  /** Undefined: the person at the terminal decides. */
  decision: 'approved' | 'denied' | undefined;
  signal: AbortSignal;
  onInterrupt: () => void;
}

/** Resolves with the Session as it ended. */
export async function tell(
  { client, agent, environment }: Setting,
  shop: Shop,
  asking: Asking,
  undo: (() => Promise<unknown>)[],
): Promise<Session> {
  const { signal } = asking;
  const input = `My order ${order.orderId} (${order.amount.toFixed(2)} ${order.currency}) arrived damaged. Please refund it.`;
  const { sessionId } = await client.sessions.open(
    { agentId: agent.agentId, environment, input, closeOnIdle: true, metadata: { order: order.orderId } },
    { signal },
  );
  undo.push(async () => {
    const { endedAt } = await client.sessions.get(sessionId);
    if (endedAt === null) await client.sessions.cancel(sessionId);
    await client.sessions.delete(sessionId);
  });

  heading(`Session ${sessionId}`);
  row('customer', input);
  const text = new Stream('agent');
  for await (const { chunks } of client.sessions.stream(sessionId, {}, { signal })) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') {
        text.write(chunk.delta);
        continue;
      }
      text.end();
      show(chunk);
      for (const operationId of awaited(chunk)) {
        const approved = await decide(asking);
        if (approved) await client.approvals.approve(operationId, { onBehalfOf: 'the person at the terminal' });
        else await client.approvals.deny(operationId, { reason: 'The person at the terminal said no.' });
      }
    }
  }
  row('refunds', `${shop.refunds} made by the shop`);

  await shop.ended(signal, WEBHOOKS_MAX_MS);
  heading('Webhooks received, each signature verified');
  table(shop.received.map(webhookCells));

  heading('The event log');
  table((await recordsOf(client, sessionId, environment)).map(eventCells));
  return await client.sessions.get(sessionId, { signal });
}

/** The operations that a person must decide on before the Session goes on. */
function awaited(chunk: Chunk): readonly string[] {
  return chunk.type === 'session.status' ? (chunk.waitingFor?.operationIds ?? []) : [];
}

function show(chunk: Chunk): void {
  switch (chunk.type) {
    case 'approval.requested':
      row('approval', `${styled('yellow', 'asked for')} ${chunk.name}(${compact(chunk.input)})`);
      break;
    case 'approval.resolved':
      row('approval', styled(chunk.decision === 'approved' ? 'green' : 'red', chunk.decision));
      break;
    case 'tool.call':
      row('tool', `${chunk.tool}(${compact(chunk.input)})`);
      break;
    case 'tool.result':
      row('result', chunk.error === undefined ? compact(chunk.output) : chunk.error);
      break;
    case 'message.reset':
      row('agent', styled('dim', 'the model broke off and is asked again'));
      break;
    case 'turn.completed':
      row('turn', `over: ${chunk.stopReason}, ${chunk.usage.inputTokens} tokens in, ${chunk.usage.outputTokens} out`);
      break;
    case 'session.status':
      row('status', styled(chunk.status === 'failed' ? 'red' : 'cyan', chunk.status));
      break;
  }
}

async function decide({ decision, signal, onInterrupt }: Asking): Promise<boolean> {
  if (decision === undefined) {
    line();
    return await confirm('  Shall it run? y/n › ', signal, onInterrupt).finally(() => line());
  }
  line(`\n  Shall it run? y/n › ${decision === 'approved' ? 'y (--yes)' : 'n (--no)'}\n`);
  return decision === 'approved';
}

/** `whd_…  turn_1:seq_4  message.chunk ×3, session.status` */
function webhookCells({ envelope, delivery }: Received): string[] {
  const counts = new Map<string, number>();
  for (const { type } of envelope.chunks) counts.set(type, (counts.get(type) ?? 0) + 1);
  const types = [...counts].map(([type, count]) => (count === 1 ? type : `${type} ×${count}`));
  return [delivery.deliveryId, `attempt ${delivery.attempt}`, envelope.cursor, types.join(', ')];
}

/** What the demo did, oldest first: the Session's records and the Environment's, and those of who did it. */
async function recordsOf(client: Setting['client'], sessionId: string, environment: string): Promise<Event[]> {
  const { apiKey } = await client.me();
  const records = new Map<number, Event>();
  for (const query of [{ sessionId }, { environment }, { actorId: apiKey?.keyId }, { resourceId: apiKey?.keyId }]) {
    for await (const event of client.events.list(query)) records.set(event.sequence, event);
  }
  return [...records.values()].sort((a, b) => a.sequence - b.sequence);
}

function eventCells({ sequence, type, actor, resource }: Event): string[] {
  return [String(sequence).padStart(3), type, `by ${actor.name}`, resource.id];
}
