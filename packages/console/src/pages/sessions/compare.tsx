// Two sessions with the same beginning, next to each other: a fork and its origin, or two forks of one session.
import type { Session } from '@signalbox/client';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { Select } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { duration } from '../../ui/time.tsx';
import { number } from './session-text.ts';
import { LiveConversation, useTurns } from './session-view.tsx';
import { useUnsentStore } from './unsent-message.ts';
import { useFollowing, useSession } from './use-session.ts';
import './session.css';

export function ComparePage() {
  const { organizationId } = useOrganization();
  const { sessionId } = useParams({ from: '/$organizationId/sessions/$sessionId/compare' });
  const query = useSession(sessionId);
  return (
    <Page
      title="Compare sessions"
      about="A fork next to the session that it continues. Both are live: you can send messages to each."
      actions={
        <ButtonLink to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
          Open fork
        </ButtonLink>
      }
    >
      <Await query={{ ...query, error: query.data ? undefined : query.error }}>
        {(session) => <Compared session={session} key={sessionId} />}
      </Await>
    </Page>
  );
}

// One page of the list.
const MOST_FORKS = 100;

function Compared({ session }: { session: Session }) {
  const { sessionId, forkedFrom } = session;
  const { with: chosen } = useSearch({ from: '/$organizationId/sessions/$sessionId/compare' });
  const navigate = useNavigate();
  const originId = forkedFrom?.sessionId;
  const siblings = useApiQuery(['sessions', 'forks', originId, 'choice'], async (client) =>
    originId ? (await client.sessions.list({ forkedFromSessionId: originId, limit: MOST_FORKS })).data : [],
  ).data;
  const otherId = chosen ?? originId;
  const other = useSession(otherId ?? sessionId);
  if (!originId || !otherId) {
    return (
      <Notice>
        <p>This session is not a fork, so there is nothing to compare it with.</p>
      </Notice>
    );
  }
  const others = (siblings ?? []).filter((one) => one.sessionId !== sessionId);
  const shared = other.data ? sharedTurns(session, other.data) : forkedFrom.turn;
  return (
    <div className="stack">
      <div className="row apart">
        <p className="quiet">
          {shared === 0
            ? 'They have no turns in common.'
            : `${shared === 1 ? 'Turn 1 is' : `Turns 1 to ${shared} are`} the same in both. Later turns are below.`}
        </p>
        {others.length > 0 && (
          <Select
            label="Compare with"
            value={otherId}
            onChange={({ currentTarget: { value } }) =>
              void navigate({ to: '.', search: { with: value === originId ? undefined : value } })
            }
            options={[
              { value: originId, label: 'Original session' },
              ...others.map((one) => ({ value: one.sessionId, label: `Another fork (…${one.sessionId.slice(-6)})` })),
            ]}
          />
        )}
      </div>
      <div className="compared">
        {other.data === undefined && other.error ? (
          <section className="card stack">
            <h2>Original session</h2>
            <p className="quiet">It was deleted. The fork keeps the conversation that it continues.</p>
          </section>
        ) : (
          <Await query={{ ...other, error: other.data ? undefined : other.error }}>
            {(it) => (
              <Side
                session={it}
                title={it.sessionId === originId ? 'Original session' : 'Another fork'}
                after={shared}
                key={it.sessionId}
              />
            )}
          </Await>
        )}
        <Side session={session} title="Fork" after={shared} />
      </div>
    </div>
  );
}

/** How many turns both have inherited from, or share with, each other. */
function sharedTurns(a: Session, b: Session): number {
  const turnOf = (fork: Session, origin: string) =>
    fork.forkedFrom?.sessionId === origin ? fork.forkedFrom.turn : undefined;
  const direct = turnOf(a, b.sessionId) ?? turnOf(b, a.sessionId);
  if (direct !== undefined) return direct;
  const isSameOrigin = a.forkedFrom?.sessionId === b.forkedFrom?.sessionId;
  return isSameOrigin ? Math.min(a.forkedFrom?.turn ?? 0, b.forkedFrom?.turn ?? 0) : 0;
}

function Side({ session, title, after }: { session: Session; title: string; after: number }) {
  const followed = useFollowing(session);
  const timeline = useTurns(session.sessionId);
  const unsent = useUnsentStore();
  const turns = (timeline.data ?? []).filter(({ turn }) => turn > after);
  const versions = [...new Set(turns.map(({ agentVersion }) => agentVersion))].toSorted((a, b) => a - b);
  const tokens = turns.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0);
  const cost = turns.reduce<number | null>(
    (sum, { usage }) => (usage.costUsd === null ? sum : (sum ?? 0) + usage.costUsd),
    null,
  );
  const ms = turns.reduce(
    (sum, { startedAt, endedAt }) => sum + (endedAt ? Date.parse(endedAt) - Date.parse(startedAt) : 0),
    0,
  );
  return (
    <section className="card stack" aria-label={title}>
      <header className="stack tight">
        <div className="row apart">
          <h2>{title}</h2>
          <SessionLink sessionId={session.sessionId} />
        </div>
        <p className="row small quiet number">
          {versions.length > 0 && (
            <span>
              Agent {versions.length === 1 ? 'version' : 'versions'} {versions.join(', ')}
            </span>
          )}
          <span>{counted(turns.length, 'turn')}</span>
          {turns.length > 0 && <span>{number(tokens)} tokens</span>}
          {cost !== null && (
            <span>
              <Dollars usd={cost} />
            </span>
          )}
          {ms > 0 && <span>{duration(ms)}</span>}
        </p>
      </header>
      <div className="session-view contained">
        <LiveConversation
          session={session}
          followed={followed}
          timeline={timeline}
          unsent={unsent}
          after={after}
          hasStatus
        />
      </div>
    </section>
  );
}
