// Guides a new installation through its first steps. Progress is read from the service, so that a reload or a colleague
// continues where the page was left.
import { Link, type LinkComponentProps } from '@tanstack/react-router';
import { BookOpen, Bot, FlaskConical, type LucideIcon, Users } from 'lucide-react';
import type { ReactNode } from 'react';
import { useGettingStarted, useProgress } from '../../data/getting-started.ts';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { useToast } from '../../ui/toast.tsx';
import { KeyStep } from './key-step.tsx';
import { refundDesk } from './refund-desk.ts';
import { RunStep } from './run-step.tsx';
import { Step, type StepState } from './step.tsx';
import { WebhookStep } from './webhook-step.tsx';
import './start.css';

/** Where the agent of the guide runs. */
const ENVIRONMENT = 'staging';

export function StartPage() {
  const { may } = useOrganization();
  if (!may('write')) {
    return (
      <Page title="Getting started">
        <Notice title="Your role can’t make these changes.">
          <p>Ask an admin of the organization to follow these steps, or to give you the member role.</p>
        </Notice>
      </Page>
    );
  }
  return <Guide />;
}

function Guide() {
  const { may } = useOrganization();
  // A delivery is not an event.
  const progress = useProgress({ everyMs: 5_000 });
  const agents = useApiQuery(['agents', 'first-minutes'], async (client) => {
    const { data } = await client.agents.list({ limit: 100 });
    return data.find(({ metadata }) => metadata.template === 'first-minutes') ?? null;
  });
  const agentId = agents.data?.agentId;
  const sessions = useApiQuery(
    ['sessions', 'first-minutes', agentId],
    async (client) =>
      (await client.sessions.list({ agentId: agentId!, environment: ENVIRONMENT, limit: 1 })).data[0] ?? null,
    { enabled: agentId !== undefined },
  );
  const isDone = [progress.hasAgent, progress.hasApproved, progress.hasDelivered, progress.hasKey];
  const next = isDone.findIndex((one) => !one);
  // The first step that is not known to be done is the next one only if it is known not to be.
  const stateOf = (index: number): StepState =>
    isDone[index] ? 'done' : index === next && isDone[index] === false ? 'current' : 'later';
  return (
    <Page
      title="Getting started"
      about="Run an agent that asks before it acts. Nothing here costs money or leaves this service."
      actions={
        <>
          {progress.done !== undefined && (
            <span className="quiet number">
              {progress.done} of {progress.of} steps done
            </span>
          )}
          <NavigationEntry />
        </>
      }
    >
      {progress.isComplete && <WhatNext />}
      <ol className="steps">
        <Step number={1} title="Create an agent" state={stateOf(0)}>
          <Await query={agents}>
            {(agent) =>
              agent ? (
                <ExistingAgent agentId={agent.agentId} name={agent.name} />
              ) : progress.hasAgent ? (
                <p className="quiet">The organization has an agent.</p>
              ) : (
                <NewAgent isNext />
              )
            }
          </Await>
        </Step>
        <RunStep
          state={sessions.data?.status === 'waiting' ? 'current' : stateOf(1)}
          agentId={agentId}
          newAgent={progress.hasAgent && agents.data === null && <NewAgent isNext={stateOf(1) === 'current'} />}
          environment={ENVIRONMENT}
          session={agentId === undefined ? null : sessions}
        />
        <WebhookStep state={stateOf(2)} environment={ENVIRONMENT} since={sessions.data?.createdAt} />
        {may('admin') && <KeyStep state={stateOf(3)} />}
      </ol>
    </Page>
  );
}

function NavigationEntry() {
  const { isShown, show, dismiss } = useGettingStarted();
  const toast = useToast();
  if (!isShown) {
    return (
      <Button look="bare" onClick={show}>
        Keep in the navigation
      </Button>
    );
  }
  return (
    <Button
      look="bare"
      onClick={() => {
        dismiss();
        toast('The guide stays in the menu with your name.');
      }}
    >
      Dismiss
    </Button>
  );
}

function NewAgent({ isNext }: { isNext: boolean }) {
  const create = useApiMutation((client, _: undefined) => client.agents.create(refundDesk), ['agents']);
  return (
    <>
      <p>
        A refund desk on the <code>scripted</code> model, which needs no model provider. Its tool{' '}
        <code>refund_order</code> has an effect, so each call waits for approval.
      </p>
      <div className="row">
        <Button look={isNext ? 'primary' : undefined} busy={create.isPending} onClick={() => create.mutate(undefined)}>
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
      </Link>{' '}
      calls <code>refund_order</code>, which needs approval.
    </p>
  );
}

function WhatNext() {
  const { organizationId, may } = useOrganization();
  const params = { organizationId };
  return (
    <section className="stack" aria-labelledby="what-next">
      <h2 id="what-next">All steps are done. What next?</h2>
      <div className="next-steps">
        <Next to="/$organizationId/agents/new" params={params} icon={Bot} title="Create your agent">
          With a model of your own, from a template.
        </Next>
        <Next to="/$organizationId/playground" params={params} icon={FlaskConical} title="Compare drafts">
          Try instructions and models side by side.
        </Next>
        {may('admin') && (
          <Next to="/$organizationId/people" params={params} icon={Users} title="Invite people">
            They can approve calls and change agents.
          </Next>
        )}
        <a href="/docs" target="_blank" rel="noopener" className="card">
          <NextText icon={BookOpen} title="Read the API reference">
            Every call, with examples.
          </NextText>
        </a>
      </div>
    </section>
  );
}

interface NextProps {
  icon: LucideIcon;
  title: string;
  children: ReactNode;
}

function Next({ icon, title, children, ...link }: LinkComponentProps & NextProps) {
  return (
    <Link {...link} className="card">
      <NextText icon={icon} title={title}>
        {children}
      </NextText>
    </Link>
  );
}

function NextText({ icon: Icon, title, children }: NextProps) {
  return (
    <>
      <Icon aria-hidden="true" />
      <span className="stack tight">
        <strong>{title}</strong>
        <span className="quiet">{children}</span>
      </span>
    </>
  );
}
