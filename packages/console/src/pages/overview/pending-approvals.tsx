import type { Approval } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { capped, counted, toolTitle } from '../../text-format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { Await } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName } from '../approvals/approval-source.tsx';

/** The number of pending approvals and the oldest one. */
export function PendingApprovals({ count }: { count: number }) {
  const { organizationId, may } = useOrganization();
  const query = useApiQuery(['approvals', 'oldest'], async (client) => {
    const { data } = await client.approvals.list({ status: 'pending', limit: 1 });
    return data[0] ?? null;
  });
  return (
    <section className="card" aria-labelledby="waiting">
      <h2 id="waiting">Pending approvals</h2>
      {count === 0 ? (
        <p className="quiet">No pending approvals.</p>
      ) : (
        <>
          <p>
            <strong className="figure number">{capped(count)}</strong>{' '}
            {counted(count, 'tool call is', 'tool calls are').replace(/^\S+ /, '')} waiting for a decision
          </p>
          <Await query={query}>{(oldest) => oldest && <Oldest approval={oldest} />}</Await>
          <div className="row">
            <ButtonLink look="primary" to="/$organizationId/approvals" params={{ organizationId }}>
              {may('write') ? 'Review approvals' : 'View approvals'}
            </ButtonLink>
          </div>
        </>
      )}
    </section>
  );
}

function Oldest({ approval: { operationId, name, agentId, requestedAt } }: { approval: Approval }) {
  const { organizationId } = useOrganization();
  return (
    <p>
      Oldest:{' '}
      <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
        <PlainText text={toolTitle(name)} />
      </Link>{' '}
      <span className="quiet">
        by <AgentName agentId={agentId} />, <Time at={requestedAt} />
      </span>
    </p>
  );
}
