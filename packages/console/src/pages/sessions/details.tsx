// What a session is, what it used, and the sessions that belong to it.
import type { Agent, ListedSession, Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { GitFork, Network } from 'lucide-react';
import { type ReactNode, useId } from 'react';
import { useSessionName } from '../../data/agent-names.ts';
import { type ListQuery, useList, useOrganization } from '../../data/organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Meter } from '../../ui/meter.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration, Time } from '../../ui/time.tsx';
import { SessionTitle } from './session-columns.tsx';
import { number, stopReasonText, tokensText } from './session-text.ts';
import { useChildren } from './use-session.ts';

export function SessionDetails({ session, agent }: { session: Session; agent: Agent | undefined }) {
  const { sessionId, metadata } = session;
  return (
    <aside className="session-details" aria-label="About this session">
      <Facts title="Session">
        <About session={session} agent={agent} />
      </Facts>
      <div className="stack">
        <Facts title="Usage">
          <Used session={session} />
        </Facts>
        {Object.keys(metadata).length > 0 && (
          <Facts title="Metadata">
            {Object.entries(metadata).map(([key, value]) => (
              <Fact key={key} name={<PlainText text={key} />}>
                <MetadataValue value={value} />
              </Fact>
            ))}
          </Facts>
        )}
      </div>
      <Children sessionId={sessionId} />
      <Forks sessionId={sessionId} />
    </aside>
  );
}

function Facts({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <dl className="facts">{children}</dl>
    </section>
  );
}

function Fact({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function About({ session, agent }: { session: Session; agent: Agent | undefined }) {
  const { organizationId } = useOrganization();
  const { sessionId, agentId, agentVersion, environment, endUser, parentSessionId, forkedFrom } = session;
  return (
    <>
      <Fact name="Agent">
        {agent ? (
          <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId }}>
            <PlainText text={agent.name} />
          </Link>
        ) : (
          <IdChip value={agentId} />
        )}
        {agentVersion !== null && <span className="quiet small"> version {agentVersion}</span>}
      </Fact>
      {agent?.model.provider === 'worker' && (
        <Fact name="Run by">
          your worker, from the queue <code>{agent.model.queue}</code>
        </Fact>
      )}
      <Fact name="Environment">{environment}</Fact>
      {endUser && (
        <Fact name="End user">
          <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ endUserId: endUser.id }}>
            <PlainText text={endUser.name ?? endUser.id} />
          </Link>
          {endUser.name !== undefined && (
            <div className="quiet small">
              <PlainText text={endUser.id} />
            </div>
          )}
        </Fact>
      )}
      {parentSessionId && (
        <Fact name="Parent">
          <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: parentSessionId }}>
            Parent session
          </Link>
        </Fact>
      )}
      {forkedFrom && (
        <Fact name="Forked from">
          <SessionLink sessionId={forkedFrom.sessionId} /> <span className="quiet small">{forkPoint(forkedFrom)}</span>
        </Fact>
      )}
      <Fact name="Opened">
        <Time at={session.createdAt} />
      </Fact>
      {session.endedAt && (
        <Fact name="Ended">
          <Time at={session.endedAt} />
        </Fact>
      )}
      <Fact name="ID">
        <IdChip value={sessionId} />
      </Fact>
    </>
  );
}

const forkPoint = ({ turn }: NonNullable<Session['forkedFrom']>) =>
  turn === 0 ? 'before its first turn' : `after turn ${turn}`;

/** With how much of the budget that is. */
function Used({ session: { turn, stopReason, usage, budget } }: { session: Session }) {
  const hasNoPrice = usage.costUsd === null && usage.steps > 0;
  return (
    <>
      <Fact name="Turns">
        <span className="number">{number(turn)}</span>
        {stopReason && stopReason !== 'endTurn' && <div className="quiet small">{stopReasonText[stopReason]}</div>}
      </Fact>
      <Fact name="Steps">
        <span className="number">{number(usage.steps)}</span>
        <Limit used={usage.steps} of={budget?.maxSteps} text={number} />
      </Fact>
      <Fact name="Tool calls">
        <span className="number">{number(usage.toolCalls)}</span>
      </Fact>
      <Fact name="Tokens">
        <span className="number">{tokensText(usage)}</span>
        <Limit used={usage.inputTokens + usage.outputTokens} of={budget?.maxTokens} text={number} />
      </Fact>
      <Fact name="Cost">
        {hasNoPrice ? (
          <>
            unknown <span className="quiet small">The model has no price.</span>
          </>
        ) : (
          <span className="number">
            <Dollars usd={usage.costUsd ?? 0} />
          </span>
        )}
        <Limit used={usage.costUsd ?? 0} of={budget?.maxCostUsd} text={(usd) => <Dollars usd={usd} />} />
      </Fact>
    </>
  );
}

/** How much of a limit is used, including by child sessions. */
function Limit({ used, of, text }: { used: number; of: number | undefined; text: (value: number) => ReactNode }) {
  if (of === undefined) return null;
  return (
    <div className="limit quiet small">
      <Meter share={used / of} /> of {text(of)}, including child sessions
    </div>
  );
}

function MetadataValue({ value }: { value: Session['metadata'][string] }) {
  if (value === '') return <span className="quiet">empty</span>;
  return typeof value === 'string' ? <PlainText text={value} /> : <code>{String(value)}</code>;
}

function Children({ sessionId }: { sessionId: string }) {
  return <Related title="Child sessions" name="child-sessions" icon={Network} query={useChildren(sessionId)} />;
}

/** The sessions that continue this one. */
function Forks({ sessionId }: { sessionId: string }) {
  const { organizationId } = useOrganization();
  const query = useList(['sessions', 'forks', sessionId], (client, page) =>
    client.sessions.list({ forkedFromSessionId: sessionId, ...page }),
  );
  return (
    <Related
      title="Forks"
      name="forks"
      icon={GitFork}
      query={query}
      column={{
        id: 'from',
        label: 'Forked',
        width: '10rem',
        cell: ({ forkedFrom }) => forkPoint(forkedFrom!),
      }}
      actions={(fork) => (
        <Link
          className="button small"
          to="/$organizationId/sessions/$sessionId/compare"
          params={{ organizationId, sessionId: fork.sessionId }}
        >
          Compare
        </Link>
      )}
    />
  );
}

/** Nothing, if there are none. */
function Related({
  title,
  name,
  icon,
  query,
  column,
  actions,
}: {
  title: string;
  name: string;
  icon: typeof GitFork;
  query: ListQuery<ListedSession>;
  column?: Column<ListedSession>;
  actions?: (item: ListedSession) => ReactNode;
}) {
  const { organizationId } = useOrganization();
  const nameOf = useSessionName();
  const id = useId();
  if (query.data?.length === 0 || (!query.data && !query.error)) return null;
  return (
    <section className="stack tight related" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <Table
        name={name}
        caption={title}
        query={query}
        columns={[sessionColumn(nameOf), ...(column ? [column] : []), ...columns]}
        rowKey={({ sessionId }) => sessionId}
        rowLink={({ sessionId }) => ({
          to: '/$organizationId/sessions/$sessionId',
          params: { organizationId, sessionId },
        })}
        {...(actions && { actions })}
        empty={<EmptyState icon={icon} title={`No ${title.toLowerCase()}`} />}
      />
    </section>
  );
}

const sessionColumn = (nameOf: (session: ListedSession) => string): Column<ListedSession> => ({
  id: 'session',
  label: 'Session',
  cell: (session) => <SessionTitle session={session} name={nameOf(session)} />,
});

const columns: readonly Column<ListedSession>[] = [
  { id: 'status', label: 'Status', width: '8rem', phone: 'aside', cell: ({ status }) => <Status value={status} /> },
  {
    id: 'duration',
    label: 'Working',
    width: '6rem',
    end: true,
    from: 'desktop',
    cell: ({ workingMs }) => (workingMs === null ? '–' : duration(workingMs)),
  },
  {
    id: 'cost',
    label: 'Cost',
    width: '6rem',
    end: true,
    from: 'desktop',
    cell: ({ usage }) => (usage.costUsd === null ? '–' : <Dollars usd={usage.costUsd} as="short" />),
  },
  {
    id: 'opened',
    label: 'Opened',
    width: '7rem',
    end: true,
    phone: 'under-aside',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
];
