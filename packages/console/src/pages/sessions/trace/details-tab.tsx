import type { OperationDetails } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import { useOrganization } from '../../../data/organization.tsx';
import { IdChip } from '../../../ui/id-chip.tsx';
import { PlainText } from '../../../ui/text.tsx';
import { duration, ExactTime } from '../../../ui/time.tsx';
import { tokensText } from '../session-text.ts';
import { Part } from './step-parts.tsx';

/** When it ran, who approved it, and each attempt. */
export function DetailsTab({ step }: { step: OperationDetails }) {
  const { organizationId } = useOrganization();
  const { startedAt, firstTokenAt, endedAt, usage, approval, attempts, childSessionId, agentVersion } = step;
  const facts: [string, ReactNode][] = [
    ['Started', startedAt && <ExactTime at={startedAt} />],
    ['First token', firstTokenAt && <ExactTime at={firstTokenAt} />],
    ['Ended', endedAt && <ExactTime at={endedAt} />],
    ['Tokens', usage && tokensText(usage)],
    ['Agent version', agentVersion || 'draft'],
    ['Tool', step.kind === 'tool' && <PlainText text={`${step.name}${step.toolType ? `, ${step.toolType}` : ''}`} />],
    ['Operation', <IdChip value={step.operationId} key="id" />],
    [
      'Child session',
      childSessionId && (
        <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId: childSessionId }}>
          Open
        </Link>
      ),
    ],
  ];
  return (
    <>
      <Facts facts={facts} />
      {approval && (
        <Part title="Approval">
          <Facts
            facts={[
              ['Status', approval.status],
              ['Asked', <ExactTime at={approval.requestedAt} key="asked" />],
              ...approval.decisions.map(({ decision, actor, at, reason }): [string, ReactNode] => [
                decision,
                <>
                  <PlainText text={actor.name ?? actor.id ?? actor.type} />, <ExactTime at={at} />
                  {reason && (
                    <>
                      : <PlainText text={reason} />
                    </>
                  )}
                </>,
              ]),
            ]}
          />
        </Part>
      )}
      {attempts.length > 0 && (
        <Part title="Attempts">
          <ol className="step-attempts">
            {attempts.map(({ model, startedAt, endedAt, error }) => (
              <li key={startedAt}>
                <PlainText text={model} />{' '}
                <span className="quiet number">{duration(Date.parse(endedAt) - Date.parse(startedAt))}</span>
                {error && (
                  <p className="step-error">
                    <code>{error.code}</code> <PlainText text={error.message} />
                  </p>
                )}
              </li>
            ))}
          </ol>
        </Part>
      )}
    </>
  );
}

function Facts({ facts }: { facts: readonly [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value)
        .map(([label, value]) => (
          <Fragment key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}
