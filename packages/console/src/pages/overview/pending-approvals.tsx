import type { Approval } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { capped, counted, toolTitle } from '../../text-format.ts';
import { Await } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName } from '../approvals/approval-source.tsx';
import { Decision } from '../approvals/decision.tsx';
import { InputView } from '../approvals/input-view.tsx';

// The oldest; the others are one click away.
const SHOWN = 3;

/** The oldest pending approvals, which can be decided here. */
export function PendingApprovals({ count }: { count: number }) {
  const { organizationId } = useOrganization();
  const query = useApiQuery(['approvals', 'oldest'], async (client) => {
    const { data } = await client.approvals.list({ status: 'pending', limit: SHOWN });
    return data;
  });
  return (
    <section className="card" aria-labelledby="waiting">
      <div className="row apart">
        <h2 id="waiting">Needs you</h2>
        {count > 0 && (
          <Link to="/$organizationId/approvals" params={{ organizationId }}>
            All approvals
          </Link>
        )}
      </div>
      {count === 0 ? (
        <p className="quiet">No pending approvals.</p>
      ) : (
        <>
          <p>
            <strong className="number">{capped(count)}</strong>{' '}
            {counted(count, 'tool call is', 'tool calls are').replace(/^\S+ /, '')} waiting for a decision
          </p>
          <Await query={query}>
            {(oldest) => (
              <ul className="needs">
                {oldest.map((approval) => (
                  <Oldest key={approval.operationId} approval={approval} />
                ))}
              </ul>
            )}
          </Await>
        </>
      )}
    </section>
  );
}

function Oldest({ approval }: { approval: Approval }) {
  const { organizationId } = useOrganization();
  const { operationId, name, agentId, requestedAt } = approval;
  return (
    <li className="stack tight">
      <p>
        <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
          <PlainText text={toolTitle(name)} />
        </Link>{' '}
        <span className="quiet">
          by <AgentName agentId={agentId} />, <Time at={requestedAt} />
        </span>
      </p>
      <InputView value={approval.input} />
      <Decision approval={approval} />
    </li>
  );
}
