// Guides a new installation through its first steps. Progress is read from the service, so that a reload or a colleague
// continues where the page was left.
import type { ApiKeyWithSecret, Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { useGettingStarted, useProgress } from '../../getting-started.ts';
import { useApiMutation, useApiQuery, useOrganization } from '../../organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { FirstCall } from '../keys/new-secret.tsx';
import { LazySessionView } from '../sessions/lazy-session-view.tsx';
import { ReceivedWebhooks } from './received-webhooks.tsx';
import { firstMessage, refund, refundDesk } from './refund-desk.ts';
import './start.css';

const TEST_RECEIVER = 'signalbox:test-receiver';
const ENVIRONMENT = 'staging';

export function StartPage() {
  const { may } = useOrganization();
  const agents = useApiQuery(['agents', 'first-minutes'], async (client) => {
    const { data } = await client.agents.list({ limit: 100 });
    return data.find(({ metadata }) => metadata.template === 'first-minutes') ?? null;
  });
  const subscription = useApiQuery(['webhooks', 'first-minutes'], async (client) => {
    const { data } = await client.webhookSubscriptions.list({ limit: 100 });
    return data.find(({ environment }) => environment === ENVIRONMENT) ?? null;
  });
  const agentId = agents.data?.agentId;
  // A delivery is not an event.
  const progress = useProgress({ everyMs: 5_000 });
  const sessions = useApiQuery(
    ['sessions', 'first-minutes', agentId],
    async (client) =>
      (await client.sessions.list({ agentId: agentId!, environment: ENVIRONMENT, limit: 1 })).data[0] ?? null,
    { enabled: agentId !== undefined },
  );
  if (!may('write')) {
    return (
      <Page title="Getting started">
        <Notice title="Your role can’t make these changes.">
          <p>Ask an admin of the organization to follow these steps, or to give you the member role.</p>
        </Notice>
      </Page>
    );
  }
  return (
    <Page
      title="Getting started"
      about="Create an agent that asks before it acts, and receive its webhooks. Nothing here costs money or leaves this service."
    >
      {progress.isComplete && (
        <Notice title="All steps are done.">
          <p>
            Next, give an agent a model of your own, or call the service from your program. The{' '}
            <a href="/docs" target="_blank" rel="noopener">
              API reference
            </a>{' '}
            has every call.
          </p>
        </Notice>
      )}
      <ol className="steps">
        <KeyStep />
        <Await query={agents}>
          {(agent) => (
            <Step number={2} title="Create an agent" done={agent !== null || progress.hasAgent}>
              <p>
                A refund desk that uses the <code>scripted</code> model, so it needs no model provider. It says what it
                is about to do, then calls <code>refund_order</code>. That tool has an effect, so the call needs
                approval.
              </p>
              {agent ? <ExistingAgent agentId={agent.agentId} name={agent.name} /> : <NewAgent />}
            </Step>
          )}
        </Await>
        <Await query={subscription}>
          {(found) => (
            <Step number={3} title="Receive webhooks" done={found !== null || progress.hasSubscription}>
              <p>
                Signalbox sends the chunks of sessions in <code>{ENVIRONMENT}</code> to one URL, in signed requests.
                Until you have a receiver of your own, use the built-in one.
              </p>
              {found === null && <Subscribe />}
              {found !== null && found.url !== TEST_RECEIVER && (
                <p className="quiet">
                  {ENVIRONMENT} already sends webhooks to <code>{found.url}</code>. Look for them there.
                </p>
              )}
            </Step>
          )}
        </Await>
        <Step number={4} title="Run the agent and approve the call" done={progress.hasApproved}>
          {agentId === undefined ? (
            <p className="quiet">Create the refund desk first.</p>
          ) : (
            <Await query={sessions}>{(session) => <Run agentId={agentId} session={session} />}</Await>
          )}
        </Step>
        <Step number={5} title="See the webhooks" done={progress.hasDelivered}>
          {subscription.data?.url === TEST_RECEIVER ? (
            <ReceivedWebhooks environment={ENVIRONMENT} />
          ) : (
            <p className="quiet">Webhooks appear here once they are sent to the built-in receiver.</p>
          )}
        </Step>
      </ol>
      <NavigationEntry />
    </Page>
  );
}

function NavigationEntry() {
  const { isShown, show, dismiss } = useGettingStarted();
  return (
    <div className="row">
      <Button onClick={isShown ? dismiss : show}>
        {isShown ? 'Remove from the navigation' : 'Keep in the navigation'}
      </Button>
      {!isShown && <span className="quiet">You can always come back here through the menu with your name.</span>}
    </div>
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
  const keys = useApiQuery(['keys', 'any'], (client) => client.keys.list({ limit: 1 }), { enabled: may('admin') });
  const [created, setCreated] = useState<ApiKeyWithSecret>();
  const create = useApiMutation(
    (client, _: undefined) => client.keys.create({ name: 'First key', permission: 'write' }),
    ['keys'],
  );
  const some = (keys.data?.data.length ?? 0) > 0;
  return (
    <Step number={1} title="Create an API key" done={some}>
      <p>Your programs use this key to call the API. The console uses your sign-in instead.</p>
      {!may('admin') && <p className="quiet">Only admins can create keys. You can continue without one.</p>}
      {created?.secret ? (
        <>
          <Notice kind="warn" live title="Copy the secret now. It won’t be shown again." />
          <Code text={created.secret} label="Copy secret" />
          <FirstCall secret={created.secret} />
        </>
      ) : (
        may('admin') && (
          <div className="row">
            <Button
              look={some ? undefined : 'primary'}
              busy={create.isPending}
              onClick={() => create.mutate(undefined, { onSuccess: setCreated })}
            >
              {some ? 'Create another key' : 'Create key'}
            </Button>
          </div>
        )
      )}
      {create.error && <ErrorNotice error={create.error} />}
    </Step>
  );
}

function NewAgent() {
  const create = useApiMutation((client, _: undefined) => client.agents.create(refundDesk), ['agents']);
  return (
    <>
      <div className="row">
        <Button look="primary" busy={create.isPending} onClick={() => create.mutate(undefined)}>
          Create the refund desk
        </Button>
      </div>
      <details>
        <summary>Show the request</summary>
        <Code text={`POST /api/v1/agents\n\n${JSON.stringify(refundDesk, null, 2)}`} />
      </details>
      {create.error && <ErrorNotice error={create.error} />}
    </>
  );
}

function ExistingAgent({ agentId, name }: { agentId: string; name: string }) {
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
  const subscribe = useApiMutation(
    (client, _: undefined) => client.webhookSubscriptions.create({ environment: ENVIRONMENT, url: TEST_RECEIVER }),
    ['webhooks'],
  );
  return (
    <>
      <div className="row">
        <Button look="primary" busy={subscribe.isPending} onClick={() => subscribe.mutate(undefined)}>
          Use the built-in receiver
        </Button>
      </div>
      {subscribe.error && <ErrorNotice error={subscribe.error} />}
    </>
  );
}

function Run({ agentId, session }: { agentId: string; session: Session | null }) {
  const open = useApiMutation(
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
            {ended ? 'Run again' : 'Run the agent'}
          </Button>
          <span className="quiet">“{firstMessage}”</span>
        </div>
      )}
      {open.error && <ErrorNotice error={open.error} />}
      {session && (
        <>
          <PlayProgram key={session.sessionId} session={session} />
          <LazySessionView sessionId={session.sessionId} />
        </>
      )}
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
