// The head of a session's page: what it is about, and its facts in one line.
import type { Agent, Session, SessionTurn } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type ListQuery, useApiQuery, useOrganization } from '../../organization.tsx';
import { counted } from '../../text-format.ts';
import { Button } from '../../ui/button.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration, Time } from '../../ui/time.tsx';
import { costText } from './session-text.ts';

const TITLE_CHARACTERS = 80;

/** The agent and the first words, by which a person recognizes the session. */
export function useTitle({ sessionId }: Session, agent: Agent | undefined): string {
  // They never change, so that no event reads them again.
  const first = useApiQuery(['first-message', sessionId], (client) =>
    client.sessions.messages(sessionId, { limit: 1 }).then(({ data }) => data[0] ?? null),
  ).data;
  const text = first?.content.find((part) => part.type === 'text')?.text ?? '';
  // Without the marks of Markdown.
  const words = text
    .slice(0, 4 * TITLE_CHARACTERS)
    .replaceAll(/[*_`#>|~\s]+/g, ' ')
    .trim();
  const cut = words.length > TITLE_CHARACTERS ? `${words.slice(0, TITLE_CHARACTERS).trimEnd()}…` : words;
  const name = agent?.name ?? 'Session';
  return cut === '' ? `${name} · new session` : `${name} · ${cut}`;
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
  const working = timeline.data && !timeline.hasNextPage ? workingMs(timeline.data) : 0;
  return (
    <span className="facts-line number">
      {waitingFor?.expiresAt && (
        <span>
          expires <Time at={waitingFor.expiresAt} />
        </span>
      )}
      {waitingFor?.retryAt && (
        <span>
          next attempt <Time at={waitingFor.retryAt} />. {waitingFor.error?.message}
        </span>
      )}
      {endUser && (
        <Link to="/$organizationId/sessions" params={{ organizationId }} search={{ endUserId: endUser.id }}>
          <PlainText text={endUser.name ?? endUser.id} />
        </Link>
      )}
      <span>{environment}</span>
      {agent && version !== undefined && (
        <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: agent.agentId }}>
          v{version}
        </Link>
      )}
      <span>{counted(turn, 'turn')}</span>
      {working > 0 && <span>{duration(working)} working</span>}
      {usage.costUsd !== null && usage.steps > 0 && <span>{costText(usage.costUsd)}</span>}
      <span>
        {endedAt ? 'ended' : 'opened'} <Time at={endedAt ?? createdAt} />
      </span>
      {parentSessionId && (
        <span>
          child of <SessionLink sessionId={parentSessionId} />
        </span>
      )}
      {forkedFrom && (
        <span>
          fork of <SessionLink sessionId={forkedFrom.sessionId} />
        </span>
      )}
      <IdChip value={session.sessionId} />
    </span>
  );
}

/** How long at least one model or tool ran: without the time that the session waited for people. */
function workingMs(turns: readonly SessionTurn[]): number {
  const spans = turns
    .flatMap((turn) => turn.operations)
    .flatMap(({ kind, startedAt, endedAt }) =>
      kind === 'approval' || !startedAt || !endedAt ? [] : [[Date.parse(startedAt), Date.parse(endedAt)] as const],
    )
    .toSorted(([one], [other]) => one - other);
  let [sum, until] = [0, 0];
  for (const [from, to] of spans) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
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
