/** What the backends of `useChat` and of AG-UI ask of a session. */
import { type Message, type Session, type Signalbox, SignalboxError } from '@signalbox/client';

/** The turn that a message has started or will start. */
export async function turnOfMessage(
  client: Signalbox,
  { session, messageId }: { session: Session; messageId: string },
): Promise<number> {
  const { data } = await client.sessions.messages(session.sessionId, { order: 'desc', limit: 10 });
  const index = data.findIndex((message) => message.messageId === messageId);
  const turn = data[index]?.turn;
  if (turn) return turn;
  // Its turn follows those of the messages that were queued before it.
  const { turn: current } = await client.sessions.get(session.sessionId);
  return current + data.slice(Math.max(index, 0)).filter((message) => message.turn === null).length;
}

/** The newest stored messages, at most `limit`, oldest first. They begin with a whole turn, unless one turn is longer. */
export async function newestMessages(client: Signalbox, sessionId: string, limit: number): Promise<Message[]> {
  const newest: Message[] = [];
  for await (const message of client.sessions.messages(sessionId, { order: 'desc', limit: Math.min(limit, 100) })) {
    if (newest.push(message) >= limit) break;
  }
  newest.reverse();
  const first = newest.findIndex(({ role }) => role === 'user');
  return first > 0 ? newest.slice(first) : newest;
}

/** What a session waits for that a page can give: decisions and results of client tools. */
export function awaitsPage({ status, waitingFor }: Session): boolean {
  return status === 'waiting' && [...(waitingFor?.operationIds ?? []), ...(waitingFor?.toolCallIds ?? [])].length > 0;
}

/** Whether a turn is in progress. */
export function isActive({ status }: Pick<Session, 'status'>): boolean {
  return status === 'running' || status === 'waiting';
}

/** The cursor before the first chunk of a turn. */
export function beginningOf(turn: number): string {
  return `turn_${turn}:seq_0`;
}

export function isConflict(error: unknown): boolean {
  return error instanceof SignalboxError && error.status === 409;
}
