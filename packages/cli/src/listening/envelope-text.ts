// What a delivery contains, in a few words.
import type { Chunk, Envelope } from '@signalbox/client';

/** `message.chunk ×12, session.status completed`. */
export function envelopeText({ chunks }: Envelope): string {
  const counts = new Map<string, number>();
  for (const chunk of chunks) {
    const name = nameOf(chunk);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(', ');
}

function nameOf(chunk: Chunk): string {
  switch (chunk.type) {
    case 'session.status':
      return `${chunk.type} ${chunk.status}`;
    case 'approval.resolved':
      return `${chunk.type} ${chunk.decision}`;
    case 'turn.completed':
      return `${chunk.type} ${chunk.stopReason}`;
    default:
      return chunk.type;
  }
}
