// The built-in receiver for trying out webhooks: deliveries of a subscription with the url `signalbox:test-receiver` stay within this
// process. Everything else works as with any destination.
//
// It does what an integrator's receiver does: verifies the timestamp and the signature with the subscription's current secrets,
// stores the request, and responds with 200, or with 401 if the verification fails. The latest hundred requests of a subscription are
// stored in a table, because any node may receive and any node may list them. They are deleted with the subscription.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deliveryHeaders, type Envelope, replayWindowSeconds, testReceiverUrl } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { OrganizationEgress } from '../egress/egress.ts';
import type { EgressRequest, EgressResponse } from '../egress/exchange.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type Assignment, readAssignment } from './destinations/assignments.ts';
import { activeSecrets } from './destinations/target.ts';

const KEPT = 100;
// The size of a delivery, unless a single chunk is larger.
const KEPT_BODY_BYTES = 64 * 1024;

type SubscriptionKey = Pick<Assignment, 'organizationId' | 'environment' | 'webhookSubscriptionId'>;
type ReceiverPlatform = Pick<Platform, 'db' | 'clock' | 'vault'>;

/** The egress of the subscription's organization. Hands requests to the test receiver's url to this process, and sends all others. */
export function egressFor(
  key: SubscriptionKey,
  platform: ReceiverPlatform & Pick<Platform, 'egress'>,
): OrganizationEgress {
  const egress = platform.egress.of(key.organizationId);
  return {
    ...egress,
    request: (request) => (request.url === testReceiverUrl ? receive(key, platform, request) : egress.request(request)),
  };
}

async function receive(
  { organizationId, environment, webhookSubscriptionId }: SubscriptionKey,
  platform: ReceiverPlatform,
  { headers = {}, body }: EgressRequest,
): Promise<EgressResponse> {
  const { db, clock } = platform;
  const receivedAt = clock.now();
  const bytes = Buffer.from(body ?? '');
  const assignment = await readAssignment(platform, organizationId, environment);
  const secrets =
    assignment?.webhookSubscriptionId === webhookSubscriptionId ? activeSecrets(assignment, receivedAt) : [];
  const verified = secrets.some(({ text }) => isSigned(headers, bytes, text, receivedAt));
  const kept = bytes.subarray(0, KEPT_BODY_BYTES).toString();
  // Stores nothing if the subscription was deleted, because the entry could not be read.
  await db.query(sql`
    insert into received_webhooks (organization_id, webhook_subscription_id, received_webhook_id, session_id, headers, body,
      truncated, verified, received_at)
    select w.organization_id, w.webhook_subscription_id, ${newUuid()}::uuid, ${sessionIn(bytes)}::uuid, ${JSON.stringify(headers)}::json, ${kept}::text,
      ${bytes.length > KEPT_BODY_BYTES}::boolean, ${verified}::boolean, ${receivedAt}::timestamptz
    from webhook_subscriptions w
    where w.organization_id = ${organizationId} and w.environment = ${environment}
      and w.webhook_subscription_id = ${webhookSubscriptionId}
    for key share of w`);
  await dropOld(platform, organizationId, webhookSubscriptionId);
  return {
    status: verified ? 200 : 401,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ received: true, verified })),
    truncated: false,
  };
}

/** The session of an envelope; null for a test delivery. */
function sessionIn(body: Buffer): string | null {
  try {
    return uuidOf('ses', (JSON.parse(body.toString()) as Envelope).sessionId);
  } catch {
    return null;
  }
}

/** Verifies as docs/guides/webhooks.md tells integrators to. */
function isSigned(headers: Readonly<Record<string, string>>, body: Buffer, secret: string, now: Date): boolean {
  const timestamp = headers[deliveryHeaders.timestamp] ?? '';
  const ageSeconds = Math.abs(now.getTime() / 1000 - Number(timestamp));
  const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest();
  const given = Buffer.from(headers[deliveryHeaders.signature] ?? '', 'hex');
  return ageSeconds <= replayWindowSeconds && given.length === expected.length && timingSafeEqual(given, expected);
}

// Called after the insert was committed: of several concurrent requests, the last one to get here sees all of them.
async function dropOld({ db }: ReceiverPlatform, organizationId: string, webhookSubscriptionId: string): Promise<void> {
  await db.query(sql`
    delete from received_webhooks r
    where r.organization_id = ${organizationId} and r.webhook_subscription_id = ${webhookSubscriptionId}
      and r.received_webhook_id in (
        select x.received_webhook_id from received_webhooks x
        where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
          and x.received_webhook_id <= (
            select y.received_webhook_id from received_webhooks y
            where y.organization_id = ${organizationId} and y.webhook_subscription_id = ${webhookSubscriptionId}
            order by y.received_webhook_id desc offset ${KEPT} limit 1)
        order by x.received_webhook_id for update of x skip locked)`);
}
