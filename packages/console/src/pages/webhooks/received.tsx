import type { ReceivedWebhook } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useList, useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { Headers, RequestBody } from './attempt.tsx';

// The event log has no events for what arrives there.
const LOOK_EVERY_MS = 2_000;

/** What the built-in receiver received, newest first, updated live. */
export function ReceivedDeliveries({ environment }: { environment: string }) {
  const received = useList(
    ['webhooks', environment, 'received'],
    (client, page) => client.webhookSubscriptions.received(environment, page),
    { everyMs: LOOK_EVERY_MS },
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = received;
  return (
    <section className="stack" aria-label="Received by the test receiver">
      <p className="quiet">
        The test receiver verifies each delivery as your program would, with the secrets valid at that time, and returns
        200, or 401 if verification fails. The last 100 are stored.
      </p>
      <Await query={received}>
        {(all) => (
          <>
            <p role="status" className="small">
              {all.length === 0 ? 'Nothing received yet. Run a session or send a test.' : `${all.length} shown`}
            </p>
            {all.length > 0 && (
              <div className="data-frame received">
                {all.map((one) => (
                  <Received
                    key={`${one.deliveryId}.${one.attempt}.${one.receivedAt}`}
                    received={one}
                    environment={environment}
                  />
                ))}
              </div>
            )}
          </>
        )}
      </Await>
      {hasNextPage && (
        <div>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
      {received.isFetchNextPageError && <ErrorNotice error={received.error} />}
    </section>
  );
}

function Received({ received, environment }: { received: ReceivedWebhook; environment: string }) {
  const { organizationId } = useOrganization();
  const { deliveryId, attempt, verified, receivedAt, headers, body, truncated } = received;
  const { sessionId, cursor } = envelopeIn(body);
  return (
    <details className="attempt">
      <summary>
        <Badge tone={verified ? 'good' : 'bad'}>{verified ? 'verified' : 'not verified'}</Badge>{' '}
        <ExactTime at={receivedAt} />{' '}
        <span className="quiet small mono">
          {sessionId} {cursor}
        </span>
      </summary>
      <div className="stack">
        {sessionId !== 'ses_test' && (
          <p>
            <Link
              to="/$organizationId/webhooks/$environment"
              params={{ organizationId, environment }}
              search={{ tab: 'received', delivery: deliveryId }}
              resetScroll={false}
            >
              Delivery
            </Link>
            , attempt {attempt}
          </p>
        )}
        <h3>Headers</h3>
        <Headers of={Object.entries(headers)} />
        <h3>Body</h3>
        {truncated && <p className="quiet small">Its first 64 KiB.</p>}
        <RequestBody text={body} />
      </div>
    </details>
  );
}

function envelopeIn(body: string): { sessionId?: string; cursor?: string } {
  try {
    const { sessionId, cursor } = JSON.parse(body) as Record<string, unknown>;
    return { sessionId: String(sessionId ?? ''), cursor: String(cursor ?? '') };
  } catch {
    return {};
  }
}
