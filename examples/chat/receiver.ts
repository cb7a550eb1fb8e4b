// What the agents do, as webhooks: for work that must happen even if no page is open.
import { webhooks } from '@signalbox/client';

// Delivery is at least once: a real program keeps the ids in its database, in the transaction that stores what came.
const seen = new Set<string>();

/** Verifies the signature of each delivery before anything else. */
export const createReceiver = (secrets: string[]) =>
  webhooks.receiver({
    secrets,
    onChunks({ sessionId, chunks }, { deliveryId }) {
      if (seen.has(deliveryId)) return;
      for (const chunk of chunks) {
        if (chunk.type === 'session.status') console.log(`webhook: ${sessionId} is ${chunk.status}`);
        if (chunk.type === 'turn.completed') console.log(`webhook: ${sessionId} completed a turn: ${chunk.stopReason}`);
      }
      seen.add(deliveryId);
    },
  });
