import { Link } from '@tanstack/react-router';
import { useAsk, useOrganization } from '../../organization.tsx';
import { ButtonLink } from '../../ui/button.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { capped, counted, toolWords } from '../../words.ts';
import { AgentName } from '../approvals/asker.tsx';

/** What waits for a person: how many approvals, and the one that has waited longest. */
export function Waiting({ count }: { count: number }) {
  const { organizationId, may } = useOrganization();
  const { data: oldest } = useAsk(['approvals', 'oldest'], async (client) => {
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
              <PlainText text={toolWords(oldest.name)} />
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
