// Runs a column. The messages are queued on the service and the session is closed behind them, so a run ends without the page.
import type { Session, Signalbox } from '@signalbox/client';
import { type Column, draftOf, type Message, type Playground } from './state.ts';

/** `continues`: only the messages that the column's session does not have, after its conversation so far. */
export async function runColumn(
  client: Signalbox,
  column: Column,
  { messages, environment, origin }: Playground,
  continues: boolean,
): Promise<Column> {
  const draft = draftOf(column);
  const before = continues ? column.run! : null;
  const [first, ...more] = messages.slice(before?.messages ?? 0);
  const input = contentOf(first!);
  const closeOnIdle = more.length === 0;
  const session = before
    ? await client.sessions.fork(before.sessionId, { draft, input, closeOnIdle })
    : origin
      ? await client.sessions.fork(origin.sessionId, { atTurn: origin.turn - 1, draft, input, closeOnIdle })
      : await client.sessions.open({
          draft,
          ...(column.source && { agentId: column.source.agentId }),
          environment: environment!,
          input,
          closeOnIdle,
        });
  const { sessionId } = session;
  for (const message of more) await client.sessions.sendMessage(sessionId, { content: contentOf(message) });
  if (!closeOnIdle) await client.sessions.close(sessionId);
  return { ...column, run: { sessionId, messages: messages.length, draft: JSON.stringify(draft) } };
}

export const isBusy = ({ status }: Session): boolean => status === 'running' || status === 'waiting';

/** Whether the column has a finished run that the new messages can follow. */
export function canContinue({ run }: Column, messages: readonly Message[], session: Session | undefined): boolean {
  return run !== null && run.messages < messages.length && session?.status === 'completed';
}

function contentOf({ text, files }: Message) {
  if (files.length === 0) return text;
  const parts = files.map(({ fileId }) => ({ type: 'file' as const, fileId }));
  return text === '' ? parts : [{ type: 'text' as const, text }, ...parts];
}
