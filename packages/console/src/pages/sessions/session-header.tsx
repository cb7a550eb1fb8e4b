// The head of a session's page: what it is about, and its facts in one line.
import type { Agent, Session, SessionTurn } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import { UNSAVED } from '../../data/agent-names.ts';
import { type ListQuery, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration, Time, useTicking } from '../../ui/time.tsx';
import { isBusy, useAgent } from './use-session.ts';
import { workingMs } from './working.ts';

const TITLE_CHARACTERS = 80;
const NAME_CHARACTERS = 48;

/** The agent and the first words, by which a person recognizes the session. */
export function useTitle(session: Session): string {
  const { sessionId, turn } = session;
  const agentName = useNameOfAgent(session);
  // They never change once there is a turn, so that no event reads them again.
  const { data: first, isPending } = useApiQuery(
    ['first-message', sessionId, turn > 0],
    (client) => client.sessions.messages(sessionId, { limit: 1 }).then(({ data }) => data[0] ?? null),
    { keeps: {} },
  );
  if (isPending || agentName === undefined) return 'Session';
  const text = first?.content.find((part) => part.type === 'text')?.text ?? '';
  // Without the marks of Markdown.
  const words = text
    .slice(0, 4 * TITLE_CHARACTERS)
    .replaceAll(/[*_`#>|~\s]+/g, ' ')
    .trim();
  const cut = cutTo(words, TITLE_CHARACTERS);
  const name = cutTo(agentName, NAME_CHARACTERS);
  if (cut !== '') return `${name} · ${cut}`;
  // A first message that is only a file has no words.
  return first === null ? `${name} · new session` : name;
}

/** Undefined while it is loading. A draft may have no agent, and has a name of its own. */
function useNameOfAgent({ sessionId, agentId, draft }: Session): string | undefined {
  const agent = useAgent(agentId);
  const drafted = useApiQuery(['draft', sessionId], (client) => client.sessions.draft(sessionId), { enabled: draft });
  const { isPending } = draft ? drafted : agent;
  if (isPending) return undefined;
  return draft ? (drafted.data?.definition.name ?? UNSAVED) : (agent.data?.name ?? 'Session');
}

function cutTo(text: string, characters: number): string {
  return text.length > characters ? `${text.slice(0, characters).trimEnd()}…` : text;
}

export function FactsLine({
  session,
  agent,
  timeline,
}: {
  session: Session;
  agent: Agent | undefined;
  timeline: ListQuery<SessionTurn>;
}) {
  const { organizationId } = useOrganization();
  const { endUser, environment, turn, usage, createdAt, endedAt, parentSessionId, forkedFrom, waitingFor } = session;
  const version = session.agentVersion ?? timeline.data?.[0]?.agentVersion;
  // All turns are needed: the sum of some would be wrong.
  const turns = timeline.hasNextPage ? undefined : timeline.data;
  const all: [key: string, fact: ReactNode][] = [
    [
      'expires',
      waitingFor?.expiresAt && (
        <>
          expires <Time at={waitingFor.expiresAt} />
        </>
      ),
    ],
    [
      'retry',
      waitingFor?.retryAt && (
        <>
          {waitingFor.error?.code === 'model_limit_reached' ? 'its turn comes about' : 'next attempt'}{' '}
          <Time at={waitingFor.retryAt} />: {waitingFor.error?.message}
        </>
      ),
    ],
    [
      'end-user',
      endUser && (
        <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ endUserId: endUser.id }}>
          <PlainText text={endUser.name ?? endUser.id} />
        </Link>
      ),
    ],
    ['environment', environment],
    [
      'version',
      agent && version !== undefined && (
        <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: agent.agentId }}>
          v{version}
        </Link>
      ),
    ],
    ['turns', counted(turn, 'turn')],
    ['working', turns && turns.length > 0 && <Working session={session} turns={turns} />],
    ['cost', usage.costUsd !== null && usage.steps > 0 && <Dollars key="cost" usd={usage.costUsd} />],
    [
      'age',
      <Fragment key="age">
        {endedAt ? 'ended' : 'opened'} <Time at={endedAt ?? createdAt} />
      </Fragment>,
    ],
    [
      'parent',
      parentSessionId && (
        <>
          child of <SessionLink sessionId={parentSessionId} />
        </>
      ),
    ],
    [
      'origin',
      forkedFrom && (
        <>
          fork of <SessionLink sessionId={forkedFrom.sessionId} />
        </>
      ),
    ],
  ];
  const facts = all.filter(([, fact]) => Boolean(fact));
  return (
    <span className="facts-line number">
      {facts.map(([key, fact], index) => (
        <Fragment key={key}>
          {index > 0 && <span className="sep" aria-hidden="true" />}
          <span className={key}>{fact}</span>
        </Fragment>
      ))}
      <IdChip value={session.sessionId} />
    </span>
  );
}

/** Counts while something runs. */
function Working({ session, turns }: { session: Session; turns: readonly SessionTurn[] }) {
  const now = useTicking(isBusy(session));
  return <>{duration(workingMs(turns, now))} working</>;
}

/** Leads to the first approval that the session waits for. */
export function DecideLink({ session: { waitingFor }, onShow }: { session: Session; onShow: () => Promise<unknown> }) {
  const { may } = useOrganization();
  const count = waitingFor && 'operationIds' in waitingFor ? waitingFor.operationIds.length : 0;
  if (count === 0 || !may('write')) return null;
  return (
    <Button
      look="primary"
      onClick={() =>
        void onShow().then(() =>
          requestAnimationFrame(() => {
            const button = document.querySelector<HTMLElement>('.call[data-waiting] [aria-keyshortcuts="A"]');
            button?.scrollIntoView({ block: 'center' });
            button?.focus({ preventScroll: true });
          }),
        )
      }
    >
      {count === 1 ? 'Approve…' : `Decide ${count} approvals…`}
    </Button>
  );
}
