// The first minutes of an installation, led by the hand. What is done is read from the service, so that a reload, or a
// colleague, goes on where this page was left.
import type { ApiKeyWithSecret, Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { useAsk, useChange, useOrganization } from '../../organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { FirstCall } from '../keys/new-secret.tsx';
import { SessionView } from '../sessions/session-view.tsx';
import { Arrived } from './arrived.tsx';
import { firstMessage, refund, refundDesk } from './refund-desk.ts';
import './start.css';

const TEST_RECEIVER = 'signalbox:test-receiver';
const ENVIRONMENT = 'staging';

export function StartPage() {
  const { may } = useOrganization();
  const agents = useAsk(['agents', 'first-minutes'], async (client) => {
    const { data } = await client.agents.list({ limit: 100 });
    return data.find(({ metadata }) => metadata.template === 'first-minutes') ?? null;
  });
  const subscription = useAsk(['webhooks', 'first-minutes'], async (client) => {
    const { data } = await client.webhookSubscriptions.list({ limit: 100 });
    return data.find(({ environment }) => environment === ENVIRONMENT) ?? null;
  });
  const agentId = agents.data?.agentId;
  const sessions = useAsk(
    ['sessions', 'first-minutes', agentId],
    async (client) =>
      (await client.sessions.list({ agentId: agentId!, environment: ENVIRONMENT, limit: 1 })).data[0] ?? null,
    { enabled: agentId !== undefined },
  );
  if (!may('write')) {
    return (
      <Page title="First minutes">
        <Notice title="These steps change things, which your role may not.">
          <p>Ask an admin of the organization to take them, or for another role.</p>
        </Notice>
      </Page>
    );
  }
  return (
    <Page
      title="First minutes"
      about="From nothing to an Agent that asks before it acts, and webhooks that arrive. Nothing here costs money or leaves this service."
    >
      <ol className="steps">
        <KeyStep />
        <Await query={agents}>
          {(agent) => (
            <Step number={2} title="Make an Agent" done={agent !== null}>
              <p>
                A refund desk on the <code>scripted</code> model, which needs no provider: it says what it is about to
                do, and calls <code>refund_order</code>. That has an effect, so a person is asked first.
              </p>
              {agent ? <MadeAgent agentId={agent.agentId} name={agent.name} /> : <MakeAgent />}
            </Step>
          )}
        </Await>
        <Await query={subscription}>
          {(found) => (
            <Step number={3} title="Receive webhooks" done={found !== null}>
              <p>
                What Sessions in <code>{ENVIRONMENT}</code> do is sent, signed, to one address. Until you have a
                receiver of your own, use the one that is built in.
              </p>
              {found === null && <Subscribe />}
              {found !== null && found.url !== TEST_RECEIVER && (
                <p className="quiet">
                  {ENVIRONMENT} sends to <code>{found.url}</code> already: look there for what arrives.
                </p>
              )}
            </Step>
          )}
        </Await>
        <Step number={4} title="Run it, and approve" done={sessions.data?.status === 'completed'}>
          {agentId === undefined ? (
            <p className="quiet">Make the Agent first.</p>
          ) : (
            <Await query={sessions}>{(session) => <Run agentId={agentId} session={session} />}</Await>
          )}
        </Step>
        <Step number={5} title="See what arrived" done={false}>
          {subscription.data?.url === TEST_RECEIVER ? (
            <Arrived environment={ENVIRONMENT} />
          ) : (
            <p className="quiet">Once the built-in receiver is subscribed, what it gets stands here.</p>
          )}
        </Step>
      </ol>
    </Page>
  );
}

function Step({
  number,
  title,
  done,
  children,
}: {
  number: number;
  title: string;
  done: boolean;
  children: ReactNode;
}) {
  return (
    <li className="card">
      <div className="row">
        <h2>
          {number}. {title}
        </h2>
        {done && <Badge tone="good">done</Badge>}
      </div>
      {children}
    </li>
  );
}

function KeyStep() {
  const { may } = useOrganization();
  const keys = useAsk(['keys', 'any'], (client) => client.keys.list({ limit: 1 }), { enabled: may('admin') });
  const [made, setMade] = useState<ApiKeyWithSecret>();
  const make = useChange(
    (client, _: undefined) => client.keys.create({ name: 'First key', permission: 'write' }),
    ['keys'],
  );
  const some = (keys.data?.data.length ?? 0) > 0;
  return (
    <Step number={1} title="Make a key" done={some}>
      <p>With it your programs call Signalbox. This page itself goes by your signing in, and needs none.</p>
      {!may('admin') && <p className="quiet">Keys are made by admins; go on without.</p>}
      {made?.secret ? (
        <>
          <Notice kind="warn" live title="Copy it now: the secret is shown this once." />
          <Code text={made.secret} label="Copy the secret" />
          <FirstCall secret={made.secret} />
        </>
      ) : (
        may('admin') && (
          <div className="row">
            <Button
              look={some ? undefined : 'primary'}
              busy={make.isPending}
              onClick={() => make.mutate(undefined, { onSuccess: setMade })}
            >
              {some ? 'Make another key' : 'Make a key'}
            </Button>
          </div>
        )
      )}
      {make.error && <ErrorNotice error={make.error} />}
    </Step>
  );
}

function MakeAgent() {
  const make = useChange((client, _: undefined) => client.agents.create(refundDesk), ['agents']);
  return (
    <>
      <div className="row">
        <Button look="primary" busy={make.isPending} onClick={() => make.mutate(undefined)}>
          Make the refund desk
        </Button>
      </div>
      <details>
        <summary>What is sent</summary>
        <Code text={`POST /api/v1/agents\n\n${JSON.stringify(refundDesk, null, 2)}`} />
      </details>
      {make.error && <ErrorNotice error={make.error} />}
    </>
  );
}

function MadeAgent({ agentId, name }: { agentId: string; name: string }) {
  const { organizationId } = useOrganization();
  return (
    <p>
      <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId }}>
        {name}
      </Link>
    </p>
  );
}

function Subscribe() {
  const subscribe = useChange(
    (client, _: undefined) => client.webhookSubscriptions.create({ environment: ENVIRONMENT, url: TEST_RECEIVER }),
    ['webhooks'],
  );
  return (
    <>
      <div className="row">
        <Button look="primary" busy={subscribe.isPending} onClick={() => subscribe.mutate(undefined)}>
          Send webhooks to the built-in receiver
        </Button>
      </div>
      {subscribe.error && <ErrorNotice error={subscribe.error} />}
    </>
  );
}

function Run({ agentId, session }: { agentId: string; session: Session | null }) {
  const open = useChange(
    (client, _: undefined) =>
      client.sessions.open({ agentId, environment: ENVIRONMENT, input: firstMessage, closeOnIdle: true }),
    ['sessions'],
  );
  const ended = session?.endedAt != null;
  return (
    <>
      {(session === null || ended) && (
        <div className="row">
          <Button look={ended ? undefined : 'primary'} busy={open.isPending} onClick={() => open.mutate(undefined)}>
            {ended ? 'Run it again' : 'Run it'}
          </Button>
          <span className="quiet">“{firstMessage}”</span>
        </div>
      )}
      {open.error && <ErrorNotice error={open.error} />}
      {session && (
        <>
          <PlayProgram key={session.sessionId} session={session} />
          <SessionView sessionId={session.sessionId} />
        </>
      )}
    </>
  );
}

/** Plays the integrator's program: runs the approved tool, and posts its result. */
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
