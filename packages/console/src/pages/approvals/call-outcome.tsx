// The outcome of an approved call: whether it ran, its result, and the status of the session.
import type { Approval, Session, Signalbox, ToolResultChunk, TurnOperation } from '@signalbox/client';
import { useState } from 'react';
import { useApiQuery } from '../../data/organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { duration, Time } from '../../ui/time.tsx';
import { SessionLink } from './approval-source.tsx';
import { InputView } from './input-view.tsx';

interface Outcome {
  session: Session;
  /** undefined if the service has not planned the call yet, or no longer has it. */
  call: TurnOperation | undefined;
  result: ToolResultChunk | undefined;
}

// The event log has no event for a running call.
const AGAIN_MS = 3000;

export function CallOutcome({ approval }: { approval: Approval }) {
  const { sessionId, operationId } = approval;
  const [over, setOver] = useState(false);
  const { data } = useApiQuery(['sessions', sessionId, 'since', operationId], (client) => outcomeOf(client, approval), {
    everyMs: over ? undefined : AGAIN_MS,
  });
  if (!data) return null;
  const { session, call, result } = data;
  const isOver = call === undefined || !['pending', 'running', 'waiting'].includes(call.status);
  if (isOver !== over) setOver(isOver);
  return (
    <section className="since stack tight" aria-label="Result">
      {approval.status === 'approved' && call && (
        <div className="stack tight">
          <p>
            {wordsOf(call)}
            {call.endedAt && call.startedAt && (
              <span className="quiet">
                , <Time at={call.endedAt} />, after {duration(Date.parse(call.endedAt) - Date.parse(call.startedAt))}
              </span>
            )}
          </p>
          {result?.error !== undefined && <InputView value={result.error} />}
          {result?.output !== undefined && result.output !== null && <InputView value={result.output} />}
        </div>
      )}
      <p className="row small">
        <SessionLink sessionId={sessionId} /> <Status value={session.status} />
        {session.waitingFor && <span className="quiet">{waitsFor[session.waitingFor.type]}</span>}
      </p>
    </section>
  );
}

const waitsFor: Record<NonNullable<Session['waitingFor']>['type'], string> = {
  approval: 'for another approval',
  toolResult: 'for a tool result from your program',
  session: 'for another agent',
  several: 'for several things',
  model: 'for its model, which is unavailable',
};

function wordsOf({ status }: TurnOperation): string {
  switch (status) {
    case 'pending':
      return 'The call hasn’t started. It runs once every approval of its step is decided.';
    case 'running':
      return 'The call is running.';
    case 'waiting':
      return 'The call is waiting for its result.';
    case 'succeeded':
      return 'The call succeeded';
    case 'failed':
      return 'The call failed';
    case 'unknown':
      return 'The call was interrupted and may have taken effect. Check the system that it calls';
    default:
      return 'The call did not run because the turn was stopped';
  }
}

async function outcomeOf(client: Signalbox, approval: Approval): Promise<Outcome> {
  const { sessionId, operationId, requestedAt } = approval;
  const session = await client.sessions.get(sessionId);
  for await (const turn of client.sessions.turns(sessionId)) {
    const call = turn.operations.find((one) => one.operationId === operationId && one.kind === 'tool');
    if (call) return { session, call, result: await resultOf(client, approval, turn.turn, call) };
    if (turn.startedAt < requestedAt) break;
  }
  return { session, call: undefined, result: undefined };
}

async function resultOf(
  client: Signalbox,
  { sessionId, status }: Approval,
  turn: number,
  { endedAt, toolCallId }: TurnOperation,
): Promise<ToolResultChunk | undefined> {
  if (status !== 'approved' || endedAt === null) return undefined;
  const types = ['tool.result', 'turn.completed'] as const;
  for await (const { chunks } of client.sessions.chunks(sessionId, { cursor: `turn_${turn}:seq_0`, types })) {
    for (const chunk of chunks) {
      if (chunk.type === 'tool.result' && chunk.toolCallId === toolCallId) return chunk;
      if (chunk.turn > turn || chunk.type === 'turn.completed') return undefined;
    }
  }
  return undefined;
}
