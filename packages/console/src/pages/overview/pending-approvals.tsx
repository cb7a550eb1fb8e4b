import type { Approval } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import { useState } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { capped, toolTitle } from '../../lib/text-format.ts';
import { Await } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName } from '../approvals/approval-source.tsx';
import { Decision } from '../approvals/decision.tsx';
import { InputLine } from '../approvals/input-line.tsx';
import { InputView } from '../approvals/input-view.tsx';

// The oldest; the others are one click away.
const SHOWN = 5;

/** The oldest pending approvals, one below the other, decided in place. Only their number if they could not be read and `isFailureSaid`. */
export function PendingApprovals({ count, isFailureSaid }: { count: number; isFailureSaid: boolean }) {
  const { organizationId } = useOrganization();
  const environment = useEnvironment();
  const query = useApiQuery(['approvals', 'oldest', environment], async (client) => {
    const { data } = await client.approvals.list({
      status: 'pending',
      limit: SHOWN,
      ...(environment !== undefined && { environment }),
    });
    return data;
  });
  return (
    <section className="card" aria-labelledby="waiting">
      <div className="row apart">
        <h2 id="waiting">Needs you</h2>
        {count > 0 && (
          <Link className="small" to="/$organizationId/approvals" params={{ organizationId }}>
            {count > SHOWN ? `All ${capped(count)} approvals` : 'Approvals'}
          </Link>
        )}
      </div>
      {count === 0 ? (
        <p className="calm quiet">
          <CircleCheck aria-hidden="true" />
          No pending approvals.
        </p>
      ) : isFailureSaid && query.error && !query.data ? null : (
        <Await query={query}>
          {(oldest) => (
            <ul className="needs">
              {oldest.map((approval) => (
                <Oldest key={approval.operationId} approval={approval} />
              ))}
            </ul>
          )}
        </Await>
      )}
    </section>
  );
}

function Oldest({ approval }: { approval: Approval }) {
  const { organizationId } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  const { operationId, name, agentId, environment, requestedAt } = approval;
  return (
    <li data-open={isOpen}>
      <div className="about">
        <p>
          <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
            <PlainText text={toolTitle(name)} />
          </Link>{' '}
          <span className="quiet">
            <InputLine input={approval.input} />
          </span>
        </p>
        <p className="quiet small">
          <AgentName agentId={agentId} /> · {environment} · <Time at={requestedAt} />
        </p>
      </div>
      {isOpen && <InputView value={approval.input} />}
      <Decision approval={approval} isLine={!isOpen} onBegin={() => setOpen(true)} />
    </li>
  );
}
