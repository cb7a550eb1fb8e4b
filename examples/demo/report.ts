// Prints what the session left behind: the webhooks received and the records of the event log.
import type { Event, Signalbox } from '@signalbox/client';
import type { Received } from './shop.ts';
import type { Stage } from './stage.ts';
import { heading, table } from './terminal.ts';

/** A delivery waits at most 100 ms for more text. The rest is slack for a busy machine. */
const WEBHOOKS_MAX_MS = 15_000;

export async function report({ client, environment, shop, signal }: Stage): Promise<void> {
  const sessionIds: string[] = [];
  for await (const { sessionId } of client.sessions.list({ environment })) sessionIds.push(sessionId);
  await shop.ended(sessionIds, signal, WEBHOOKS_MAX_MS);
  heading('Webhooks received, each signature verified');
  table(webhookRows(shop.received));

  heading('The event log');
  table((await recordsOf(client, environment)).map(eventCells));
}

/** One row for each delivery, and only the first of several in a row that carry nothing but text. */
function webhookRows(received: readonly Received[]): string[][] {
  const rows: string[][] = [];
  let more = 0;
  for (const [index, one] of received.entries()) {
    const isMore = isText(one) && index > 0 && isText(received[index - 1]!);
    if (more > 0 && !isMore) rows.push([`… ${more} more with text`]);
    more = isMore ? more + 1 : 0;
    if (!isMore) rows.push(webhookCells(one));
  }
  return rows;
}

function isText({ envelope }: Received): boolean {
  return envelope.chunks.every(({ type }) => type === 'message.chunk');
}

/** `whd_…  turn_1:seq_4  message.chunk ×3, session.status` */
function webhookCells({ envelope, delivery }: Received): string[] {
  const counts = new Map<string, number>();
  for (const { type } of envelope.chunks) counts.set(type, (counts.get(type) ?? 0) + 1);
  const types = [...counts].map(([type, count]) => (count === 1 ? type : `${type} ×${count}`));
  return [delivery.deliveryId, `attempt ${delivery.attempt}`, envelope.cursor, types.join(', ')];
}

/** The records of the demo's environment and of its API key, oldest first. */
async function recordsOf(client: Signalbox, environment: string): Promise<Event[]> {
  const { apiKey } = await client.me();
  const records = new Map<number, Event>();
  for (const query of [{ environment }, { actorId: apiKey?.keyId }, { resourceId: apiKey?.keyId }]) {
    for await (const event of client.events.list(query)) records.set(event.sequence, event);
  }
  return [...records.values()].sort((a, b) => a.sequence - b.sequence);
}

function eventCells({ sequence, type, actor, resource }: Event): string[] {
  return [String(sequence).padStart(3), type, `by ${actor.name}`, resource.id];
}
