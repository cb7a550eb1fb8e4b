// One approval, for a link in a chat. On a phone the buttons stay within reach of the thumb.
import type { Approval } from '@signalbox/client';
import { useParams } from '@tanstack/react-router';
import { useRef } from 'react';
import { useApiQuery } from '../../data/organization.tsx';
import { toolTitle } from '../../lib/text-format.ts';
import { Missing } from '../../ui/empty-state.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { ApprovalSource } from './approval-source.tsx';
import { CallOutcome } from './call-outcome.tsx';
import { ContextView } from './context-view.tsx';
import { Decision } from './decision.tsx';
import { InputView } from './input-view.tsx';
import { useApprovalShortcuts } from './shortcuts.ts';

// The event log reports changes (frame/live.ts). Polling covers what it misses.
const AGAIN_MS = 60_000;

export function ApprovalPage() {
  const { organizationId, operationId } = useParams({ from: '/$organizationId/approvals/$operationId' });
  const query = useApiQuery(
    ['approvals', operationId],
    (client) => client.approvals.get(operationId, { include: 'context' }),
    {
      everyMs: AGAIN_MS,
    },
  );
  const page = useRef<HTMLDivElement>(null);
  useApprovalShortcuts(page);
  const { data } = query;
  return (
    <Page title={data ? toolTitle(data.name) : 'Approval'} about={data && <ApprovalSource approval={data} />}>
      <div ref={page}>
        <Await
          query={query}
          missing={<Missing what="approval" to="/$organizationId/approvals" params={{ organizationId }} />}
        >
          {(approval) => (
            <article className="one-approval" data-item tabIndex={-1} aria-label={toolTitle(approval.name)}>
              <div className="stack">
                <section className="card" aria-labelledby="input">
                  <h2 id="input">Input</h2>
                  <InputView value={approval.input} />
                </section>
                <div className={approval.status === 'pending' ? 'under-thumb' : 'card'}>
                  <Decision approval={approval} />
                </div>
                {approval.status !== 'pending' && <CallOutcome approval={approval} />}
              </div>
              <div className="stack">
                {(approval.context ?? []).length > 0 && (
                  <section className="card" aria-labelledby="before">
                    <h2 id="before">Before the call</h2>
                    <ContextView approval={approval} />
                  </section>
                )}
                <Facts approval={approval} />
              </div>
            </article>
          )}
        </Await>
      </div>
    </Page>
  );
}

function Facts({ approval: { name, requestedAt, expiresAt, operationId } }: { approval: Approval }) {
  return (
    <dl className="facts small">
      <dt>Tool</dt>
      <dd>
        <code>
          <PlainText text={name} />
        </code>
      </dd>
      <dt>Requested</dt>
      <dd>
        <ExactTime at={requestedAt} />
      </dd>
      {expiresAt !== null && (
        <>
          <dt>Time limit</dt>
          <dd>
            <ExactTime at={expiresAt} />
          </dd>
        </>
      )}
      <dt>Operation</dt>
      <dd>
        <IdChip value={operationId} />
      </dd>
    </dl>
  );
}
