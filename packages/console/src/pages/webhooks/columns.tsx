// The columns of the list of webhooks: which one, whether deliveries arrive, and how many.
import type { WebhookSubscription } from '@signalbox/client';
import { RowTitle } from '../../ui/row-title.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { type Delivered, deliveredText } from './course.tsx';
import { WebhookState } from './health.tsx';
import { destinationText } from './reasons.ts';
import './webhooks.css';

export function webhookColumns(delivered: ReadonlyMap<string, Delivered>): Column<WebhookSubscription>[] {
  return [
    {
      id: 'environment',
      label: 'Webhook',
      cell: ({ environment, url }) => <RowTitle title={environment} about={destinationText(url)} />,
    },
    {
      id: 'state',
      label: 'State',
      width: '26%',
      phone: 'aside',
      cell: (subscription) => <StateAndReason subscription={subscription} />,
    },
    {
      id: 'accepted',
      label: 'Accepted, 24 h',
      width: '9rem',
      end: true,
      phone: 'under',
      cell: ({ environment }) => {
        const one = delivered.get(environment);
        if (!one) return '–';
        return (
          <>
            {deliveredText(one)}
            <span className="only-on-phone"> accepted</span>
          </>
        );
      },
    },
    {
      id: 'lastSuccess',
      label: 'Last accepted',
      width: '8rem',
      end: true,
      choice: 'shown',
      phone: 'under-aside',
      cell: ({ lastSuccessAt }) => (
        <>
          {lastSuccessAt !== null && <span className="only-on-phone">delivered </span>}
          <Time at={lastSuccessAt} />
          {lastSuccessAt === null && <span className="only-on-phone"> delivered</span>}
        </>
      ),
    },
    {
      id: 'lastFailure',
      label: 'Last failure',
      width: '8rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      cell: ({ lastFailureAt }) => <Time at={lastFailureAt} />,
    },
    {
      id: 'created',
      label: 'Created',
      width: '8rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
}

/** The reason is in the same line, cut at the end of the column. */
function StateAndReason({ subscription }: { subscription: WebhookSubscription }) {
  const { status, disabledReason, health } = subscription;
  return (
    <span className="badge-and-words" title={health.reason ?? undefined}>
      <WebhookState subscription={subscription} />{' '}
      <span className="quiet small state-reason">
        {status === 'disabled'
          ? disabledReason === 'gone'
            ? 'the receiver returned 410'
            : 'failed for 5 days'
          : status === 'paused'
            ? 'deliveries are queued'
            : health.state === 'blocked'
              ? health.reason
              : health.failingSince && (
                  <>
                    since <Time at={health.failingSince} />
                  </>
                )}
      </span>
    </span>
  );
}
