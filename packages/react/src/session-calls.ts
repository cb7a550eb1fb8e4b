/** What the backends of `useChat` and of AG-UI ask of a session. */
import { type Message, type Session, type Signalbox, SignalboxError } from '@signalbox/client';

/** The turn that a message has started or will start. */
export async function turnOfMessage(
  client: Signalbox,
  { session, messageId }: { session: Session; messageId: string },
): Promise<number> {
  const { sessionId } = session;
  let { turn: before } = session;
  while (true) {
    const { data } = await client.sessions.messages(sessionId, { order: 'desc', limit: 10 });
    const index = data.findIndex((message) => message.messageId === messageId);
    const started = data[index]?.turn;
    if (started) return started;
    const { turn } = await client.sessions.get(sessionId);
    // Its turn follows those of the messages that were queued before it, which counts only if none has started meanwhile.
    if (turn === before) return turn + data.slice(Math.max(index, 0)).filter((message) => message.turn === null).length;
    before = turn;
  }
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

/** Whether the caller may decide an approval. If that can't be found out, it may try. */
export async function mayDecide(client: Signalbox, operationId: string): Promise<boolean> {
  try {
    const { status, refusal } = await client.approvals.get(operationId);
    // Someone may have decided it meanwhile: then the response continues.
    return status === 'pending' && refusal === null;
  } catch {
    return true;
  }
}

/** Whether a session waits for what the page can give: decisions and results of client tools. */
export async function awaitsPage(client: Signalbox, { status, waitingFor }: Session): Promise<boolean> {
  if (status !== 'waiting' || !waitingFor) return false;
  if (waitingFor.toolCallIds.length > 0) return true;
  const decisions = await Promise.all(waitingFor.operationIds.map((id) => mayDecide(client, id)));
  return decisions.includes(true);
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
