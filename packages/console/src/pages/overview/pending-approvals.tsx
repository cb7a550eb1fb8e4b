import { Link } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { capped, counted, toolTitle } from '../../text-format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName } from '../approvals/approval-source.tsx';

/** The number of pending approvals and the oldest one. */
export function PendingApprovals({ count }: { count: number }) {
  const { organizationId, may } = useOrganization();
  const { data: oldest } = useApiQuery(['approvals', 'oldest'], async (client) => {
    const { data } = await client.approvals.list({ status: 'pending', limit: 1 });
    return data[0] ?? null;
  });
  return (
    <section className="card" aria-labelledby="waiting">
      <h2 id="waiting">Pending approvals</h2>
      {count === 0 || !oldest ? (
        <p className="quiet">No pending approvals.</p>
      ) : (
        <>
          <p>
            <strong className="figure number">{capped(count)}</strong>{' '}
            {counted(count, 'tool call is', 'tool calls are').replace(/^\S+ /, '')} waiting for a decision
          </p>
          <p>
            Oldest:{' '}
            <Link
              to="/$organizationId/approvals/$operationId"
              params={{ organizationId, operationId: oldest.operationId }}
            >
              <PlainText text={toolTitle(oldest.name)} />
            </Link>{' '}
            <span className="quiet">
              by <AgentName agentId={oldest.agentId} />, <Time at={oldest.requestedAt} />
            </span>
          </p>
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
