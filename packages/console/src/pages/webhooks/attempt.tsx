// One POST of a delivery: the request and the response.
import type { WebhookAttempt, WebhookDeliveryWithAttempts } from '@signalbox/client';
import { Badge } from '../../ui/badge.tsx';
import { Code, Json } from '../../ui/copy.tsx';
import { duration, ExactTime } from '../../ui/time.tsx';
import { Explained } from './health.tsx';
import { outcomeOf } from './reasons.ts';
import './webhooks.css';

export function Attempt({
  delivery,
  attempt,
  open,
}: {
  delivery: WebhookDeliveryWithAttempts;
  attempt: WebhookAttempt;
  open: boolean;
}) {
  return (
    <details className="attempt" open={open}>
      <summary>
        Attempt {attempt.attempt} <Badge tone={attempt.error === null ? 'good' : 'bad'}>{outcomeOf(attempt)}</Badge>{' '}
        <span className="quiet small">
          <ExactTime at={attempt.at} />, {duration(attempt.durationMs)}
        </span>
      </summary>
      <div className="stack">
        <Explained attempt={attempt} />
        <h3>Response</h3>
        <ReceiverResponse attempt={attempt} />
        <h3>Request headers</h3>
        <Headers of={headersOf(delivery, attempt)} />
        <p className="quiet small">
          <code>X-Service-Signature</code> and <code>webhook-signature</code> are computed for each attempt and not
          stored.
        </p>
      </div>
    </details>
  );
}

/** Headers as they are sent. */
export function Headers({ of }: { of: readonly (readonly [name: string, value: string])[] }) {
  return (
    <dl className="headers">
      {of.map(([name, value]) => (
        <div key={name} className="pair">
          <dt>{name}</dt>
          <dd>{value || <span className="quiet">empty</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The receiver's response. It can be anything, so it is shown as text. */
export function ReceiverResponse({ attempt: { status, responseBody } }: { attempt: WebhookAttempt }) {
  if (status === null) return <p className="quiet">No response.</p>;
  if (responseBody === null) return <p className="quiet">{status} without a body.</p>;
  return (
    <>
      <p className="quiet small">{status}. First 4 KiB of the body:</p>
      <Code text={responseBody} />
    </>
  );
}

/** The request body, the same in every attempt. */
export function RequestBody({ text }: { text: string | null }) {
  if (text === null)
    return <p className="quiet">No longer stored because the session was deleted or its journal dropped.</p>;
  try {
    return <Json value={JSON.parse(text)} />;
  } catch {
    return <Code text={text} />;
  }
}

/** The headers that the service sends (docs/guides/webhooks.md). */
function headersOf({ deliveryId, previousCursor }: WebhookDeliveryWithAttempts, attempt: WebhookAttempt) {
  const timestamp = String(Math.floor(new Date(attempt.at).getTime() / 1000));
  return [
    ['Content-Type', 'application/json'],
    ['X-Service-Delivery-Id', deliveryId],
    ['X-Service-Attempt', String(attempt.attempt)],
    ['X-Service-Timestamp', timestamp],
    ['X-Service-Secret-Version', String(attempt.secretVersion)],
    ['X-Service-Previous-Cursor', previousCursor ?? ''],
    ['webhook-id', deliveryId],
    ['webhook-timestamp', timestamp],
  ] as const;
}
