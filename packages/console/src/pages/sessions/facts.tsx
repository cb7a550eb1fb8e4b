import type { Agent, Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useApiQuery, useList, useOrganization } from '../../organization.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { SessionStatus } from './session-status.tsx';
import { costText, number, stopReasonText, tokensText } from './session-text.ts';

/** Details of a session other than its messages. */
export function Facts({ session, agent }: { session: Session; agent: Agent | undefined }) {
  const { organizationId } = useOrganization();
  const { usage, budget, metadata, endUser, parentSessionId, forkedFrom, stopReason } = session;
  const entries = Object.entries(metadata);
  return (
    <dl className="facts">
      <dt>Agent</dt>
      <dd>
        {agent ? (
          <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: agent.agentId }}>
            <PlainText text={agent.name} />
          </Link>
        ) : (
          <IdChip value={session.agentId} />
        )}
        {session.agentVersion !== null && <span className="quiet small"> version {session.agentVersion}</span>}
      </dd>
      {agent?.model.provider === 'worker' && (
        <>
          <dt>Run by</dt>
          <dd>
            {' '}
            your worker, from the queue <code>{agent.model.queue}</code>
          </dd>
        </>
      )}
      <dt>Environment</dt>
      <dd>{session.environment}</dd>
      {endUser && (
        <>
          <dt>End user</dt>
          <dd>
            <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ endUserId: endUser.id }}>
              <PlainText text={endUser.name ?? endUser.id} />
            </Link>
            {endUser.name !== undefined && (
              <div className="quiet small">
                <PlainText text={endUser.id} />
              </div>
            )}
          </dd>
        </>
      )}
      {parentSessionId && (
        <>
          <dt>Parent</dt>
          <dd>
            <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: parentSessionId }}>
              Parent session
            </Link>
          </dd>
        </>
      )}
      {forkedFrom && (
        <>
          <dt>Forked from</dt>
          <dd>
            <SessionLink sessionId={forkedFrom.sessionId} />
            <div className="quiet small">
              {forkedFrom.turn === 0 ? 'before its first turn' : `after turn ${forkedFrom.turn}`}
            </div>
          </dd>
        </>
      )}
      <dt>Turn</dt>
      <dd>
        {session.turn}
        {stopReason && stopReason !== 'endTurn' && <div className="quiet small">{stopReasonText[stopReason]}</div>}
      </dd>
      <dt>Tokens</dt>
      <dd className="number">
        {tokensText(usage)}
        {budget?.maxTokens !== undefined && (
          <Spent what="Tokens" used={usage.inputTokens + usage.outputTokens} of={budget.maxTokens} />
        )}
      </dd>
      <dt>Steps</dt>
      <dd className="number">
        {number(usage.steps)}
        {budget?.maxSteps !== undefined && <Spent what="Steps" used={usage.steps} of={budget.maxSteps} />}
      </dd>
      <dt>Tool calls</dt>
      <dd className="number">{number(usage.toolCalls)}</dd>
      <dt>Cost</dt>
      <dd className="number">
        {usage.costUsd === null && usage.steps > 0 ? (
          <>
            unknown <span className="quiet small">The model has no price.</span>
          </>
        ) : (
          costText(usage.costUsd ?? 0)
        )}
        {budget?.maxCostUsd !== undefined && (
          <Spent what="Cost" used={usage.costUsd ?? 0} of={budget.maxCostUsd} words={costText} />
        )}
      </dd>
      <dt>Opened</dt>
      <dd>
        <Time at={session.createdAt} />
      </dd>
      {session.endedAt && (
        <>
          <dt>Ended</dt>
          <dd>
            <Time at={session.endedAt} />
          </dd>
        </>
      )}
      {entries.map(([key, value]) => (
        <Fragment key={key}>
          <dt>
            <PlainText text={key} />
          </dt>
          <dd>{value === null ? <code>null</code> : <PlainText text={String(value)} />}</dd>
        </Fragment>
      ))}
      <dt>Id</dt>
      <dd>
        <IdChip value={session.sessionId} />
      </dd>
    </dl>
  );
}

/** How much of a budget is used, including by child sessions. */
function Spent({
  what,
  used,
  of,
  words = number,
}: {
  what: string;
  used: number;
  of: number;
  words?: (value: number) => string;
}) {
  return (
    <div className="spent small quiet">
      <meter aria-label={`${what}: budget used`} min={0} max={of} value={Math.min(used, of)} />
      <span>of {words(of)}, including child sessions</span>
    </div>
  );
}

export function useChildren(sessionId: string) {
  return useList(['sessions', 'of', sessionId], (client, page) =>
    client.sessions.list({ parentSessionId: sessionId, ...page }),
  );
}

/** The sessions that this session's tools opened. */
export function Children({
  sessionId,
  nameOf,
}: {
  sessionId: string;
  nameOf: (agentId: string) => string | undefined;
}) {
  const { organizationId } = useOrganization();
  const { data, hasNextPage, fetchNextPage } = useChildren(sessionId);
  if (!data || data.length === 0) return null;
  return (
    <section className="stack tight children" aria-labelledby="children">
      <h2 id="children">Child sessions</h2>
      <ul>
        {data.map((child) => (
          <li className="row" key={child.sessionId}>
            <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: child.sessionId }}>
              <PlainText text={nameOf(child.agentId) ?? child.sessionId} />
            </Link>
            <SessionStatus session={child} />
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <button type="button" className="button small" onClick={() => void fetchNextPage()}>
          Show more
        </button>
      )}
    </section>
  );
}

/** The sessions that continue this one. */
export function Forks({ sessionId }: { sessionId: string }) {
  const { organizationId } = useOrganization();
  const { data, hasNextPage, fetchNextPage } = useList(['sessions', 'forks', sessionId], (client, page) =>
    client.sessions.list({ forkedFromSessionId: sessionId, ...page }),
  );
  if (!data || data.length === 0) return null;
  return (
    <section className="stack tight children" aria-labelledby="forks">
      <h2 id="forks">Forks</h2>
      <ul>
        {data.map((fork) => (
          <li className="row" key={fork.sessionId}>
            <SessionLink sessionId={fork.sessionId} />
            <span className="quiet small">after turn {fork.forkedFrom!.turn}</span>
            <Link
              className="small"
              to="/$organizationId/sessions/$sessionId/compare"
              params={{ organizationId, sessionId: fork.sessionId }}
            >
              Compare
            </Link>
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <button type="button" className="button small" onClick={() => void fetchNextPage()}>
          Show more
        </button>
      )}
    </section>
  );
}

/** The agent of a session, even if it is archived. */
export function useAgent(agentId: string) {
  return useApiQuery(['agents', agentId], (client) => client.agents.get(agentId));
}
