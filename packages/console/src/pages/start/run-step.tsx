import type { Session } from '@signalbox/client';
import { type ReactNode, useEffect, useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { LazySessionView } from '../sessions/lazy-session-view.tsx';
import { firstMessage, refund } from './refund-desk.ts';
import { Step, type StepState } from './step.tsx';

interface SessionQuery {
  data: Session | null | undefined;
  error: unknown;
  refetch: () => Promise<unknown>;
}

export function RunStep({
  state,
  agentId,
  newAgent,
  environment,
  session,
}: {
  state: StepState;
  agentId: string | undefined;
  /** Creates it, if the organization has agents, none of which this step can run. */
  newAgent: ReactNode;
  environment: string;
  /** The newest session of the agent. Null without the agent. */
  session: SessionQuery | null;
}) {
  return (
    <Step number={2} title="Run the agent and approve the call" state={state}>
      {agentId === undefined || session === null ? (
        <>
          <p className="quiet">{textWithoutAgent(state, Boolean(newAgent))}</p>
          {newAgent}
        </>
      ) : (
        <Await query={session}>
          {(found) => (
            <Run isCurrent={state === 'current'} agentId={agentId} environment={environment} session={found} />
          )}
        </Await>
      )}
    </Step>
  );
}

function textWithoutAgent(state: StepState, hasOtherAgent: boolean): string {
  if (state === 'done') return 'A call was approved. To see how that works, create an agent that asks first.';
  if (hasOtherAgent) return 'Approve a call of an agent that you have, or create one that asks first.';
  return 'The agent says what it is about to do, and waits for you.';
}

function Run({
  isCurrent,
  agentId,
  environment,
  session,
}: {
  isCurrent: boolean;
  agentId: string;
  environment: string;
  session: Session | null;
}) {
  const open = useApiMutation(
    (client, _: undefined) => client.sessions.open({ agentId, environment, input: firstMessage, closeOnIdle: true }),
    ['sessions'],
  );
  const ended = session?.endedAt != null;
  return (
    <>
      {session === null && <p>As a customer, you write: “{firstMessage}”</p>}
      {session && (
        <>
          <PlayProgram key={session.sessionId} session={session} />
          <LazySessionView sessionId={session.sessionId} isWatched />
        </>
      )}
      {(session === null || ended) && (
        <div className="row">
          <Button
            look={isCurrent && !ended ? 'primary' : undefined}
            busy={open.isPending}
            onClick={() => open.mutate(undefined)}
          >
            {ended ? 'Run again' : 'Run the agent'}
          </Button>
        </div>
      )}
      {open.error && <ErrorNotice error={open.error} />}
    </>
  );
}

/** Acts as the integrator's program: runs the approved tool and posts its result. */
function PlayProgram({ session: { sessionId, waitingFor } }: { session: Session }) {
  const { client } = useOrganization();
  const [error, setError] = useState<unknown>();
  const awaited = waitingFor?.toolCallIds[0];
  useEffect(() => {
    if (awaited === undefined) return;
    const run = async () => {
      for await (const { chunks } of client.sessions.chunks(sessionId, { types: ['tool.call'] })) {
        const call = chunks.find((chunk) => chunk.type === 'tool.call' && chunk.toolCallId === awaited);
        if (call?.type !== 'tool.call') continue;
        await client.sessions.sendToolResult(sessionId, { toolCallId: awaited, output: refund(call.input) });
      }
    };
    run().catch(setError);
  }, [client, sessionId, awaited]);
  return error !== undefined && <ErrorNotice error={error} />;
}
