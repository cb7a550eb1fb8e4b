import { type Approval, NotFoundError } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useId, useRef } from 'react';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { toolTitle } from '../../text-format.ts';
import { PlainText } from '../../ui/text.tsx';
import { ApprovalSource } from './approval-source.tsx';
import { CallOutcome } from './call-outcome.tsx';
import { Decision } from './decision.tsx';
import { InputView } from './input-view.tsx';

/** One approval of the inbox. It keeps its place when anyone decides it, and then shows the outcome. */
export function InboxItem({ approval: last, isPending }: { approval: Approval; isPending: boolean }) {
  const { organizationId } = useOrganization();
  const { operationId } = last;
  const article = useRef<HTMLElement>(null);
  const id = useId();
  const { data, error } = useApiQuery(['approvals', operationId], (client) => client.approvals.get(operationId), {
    enabled: !isPending,
  });
  const approval = data && (!isPending || data.status !== 'pending') ? data : last;
  return (
    <article className="card approval" data-item tabIndex={-1} ref={article} aria-labelledby={id}>
      <header className="stack tight">
        <h2 id={id}>
          <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
            <PlainText text={toolTitle(approval.name)} />
          </Link>{' '}
          <code className="quiet">{approval.name}</code>
        </h2>
        <ApprovalSource approval={approval} />
      </header>
      <InputView value={approval.input} />
      {error instanceof NotFoundError ? (
        <p className="quiet">This approval no longer exists because its session was deleted.</p>
      ) : (
        <Decision
          approval={approval}
          onDecided={() => requestAnimationFrame(() => article.current?.focus({ preventScroll: true }))}
        />
      )}
      {approval.status !== 'pending' && !error && <CallOutcome approval={approval} />}
    </article>
  );
}
