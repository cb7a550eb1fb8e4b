// Which agent and session ask for an approval, since when, and until when.
import type { Approval } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time, useNow } from '../../ui/time.tsx';

/** The name of an agent, or its id if it has none to show. */
export function AgentName({ agentId }: { agentId: string }) {
  const { data, isPending } = useApiQuery(
    ['agents', agentId, 'name'],
    async (client) => (await client.agents.get(agentId)).name,
  );
  if (data !== undefined) return <PlainText text={data} />;
  return isPending ? '…' : <code>{shortId(agentId)}</code>;
}

/** The end of an id, which distinguishes it from others. */
function shortId(id: string): string {
  const [prefix, body = ''] = id.split('_');
  return `${prefix}_…${body.slice(-6)}`;
}

export function SessionLink({ sessionId }: { sessionId: string }) {
  const { organizationId } = useOrganization();
  return (
    <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }} title={sessionId}>
      {shortId(sessionId)}
    </Link>
  );
}

export function ApprovalSource({
  approval,
  isLinked = false,
}: {
  approval: Approval;
  /** With a link to its own page, to be sent to others. */
  isLinked?: boolean;
}) {
  const { organizationId } = useOrganization();
  const { operationId, agentId, sessionId, environment, requestedAt, expiresAt, status } = approval;
  return (
    <span className="asker small quiet">
      <span>
        <AgentName agentId={agentId} />
      </span>
      <span>
        <SessionLink sessionId={sessionId} />
      </span>
      <span>{environment}</span>
      <span>
        requested <Time at={requestedAt} />
      </span>
      {status === 'pending' && (
        <span>
          <Expiry at={expiresAt} />
        </span>
      )}
      {isLinked && (
        <span>
          <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
            Open approval
          </Link>
        </span>
      )}
    </span>
  );
}

// Less time than this is left: highlight it.
const SOON_MS = 15 * 60_000;

export const isSoon = (at: string, now: number) => Date.parse(at) - now < SOON_MS;

function Expiry({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null) return 'no time limit';
  const left = Date.parse(at) - now;
  const words = (
    <>
      {left > 0 ? 'expires ' : 'expired '}
      <Time at={at} />
    </>
  );
  return isSoon(at, now) ? <Badge tone="warn">{words}</Badge> : words;
}
