// An attempt at a delivery: the POST, and what the response means. In the grace period of a rotation it may take two requests: if
// the receiver refuses one secret, the other is tried at once.
import type { WebhookAttempt } from '@signalbox/contract';
import type { OrganizationEgress } from '../egress/egress.ts';
import type { EgressErrorKind } from '../egress/errors.ts';
import { EgressError } from '../egress/errors.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { errorOfStatus, retryAfterMs, type Verdict, verdictOf } from './back-off.ts';
import { headersOf, type SigningSecret } from './destinations/signing.ts';
import { activeSecrets, type Target } from './destinations/target.ts';
import { storableBody } from './response-body.ts';
import { type StoredAttempt, storedHeaders } from './stored-attempt.ts';

/** How an attempt at a delivery ended. */
export interface AttemptResult {
  verdict: Verdict;
  /** Every POST that was sent; none if the service was stopped first. */
  attempts: StoredAttempt[];
  /** The version of the secret that the last POST was signed with. */
  secretVersion: number;
  /** The receiver's `Retry-After`; 0 if it sent none. */
  retryAfterMs: number;
}

export interface AttemptOptions {
  /** The version of the service, for `User-Agent`. */
  version: string;
  /** The version of the secret to sign with first; the newest by default. */
  preferredVersion: number | undefined;
  /** Aborted when the service stops. */
  signal: AbortSignal;
  /** The time limit of a POST; 15 s by default. */
  timeoutMs?: number;
  /** What the trace says about the target. */
  attributes: Readonly<Record<string, string | undefined>>;
  /** The parent in the trace of the session's turn. */
  traceParent?: string | null;
  /** Called after each POST. */
  onAttempt?: (attempt: { verdict: Verdict; durationMs: number }) => void;
}

/** Until the status. */
const TIMEOUT_MS = 15_000;
/** After it, for the body, which is only stored: a receiver that sends it slowly, or without end, has accepted the delivery. */
const BODY_MS = 2_000;
const MAX_RESPONSE_BYTES = 16 * 1024;

/** What the headers and the log lines of an attempt say about its delivery. */
export interface OutgoingDelivery {
  /** `whd_…` or `dsd_…`. */
  deliveryId: string;
  /** `ses_…`; null if it is about no session, as a test delivery. */
  sessionId: string | null;
  /** The end of what it contains. */
  cursor: string;
  previousCursor: string;
  /** The number of attempts before. */
  attemptCount: number;
}

/** `egress` is that of the target's organization. */
export interface AttemptPlatform extends Pick<Platform, 'clock' | 'log' | 'metrics' | 'tracing'> {
  readonly egress: Pick<OrganizationEgress, 'request'>;
}

/** Resolves however the attempt ends. The lines of `log` must name the target. */
export async function attemptDelivery(
  { clock, egress, log, metrics, tracing }: AttemptPlatform,
  target: Target,
  delivery: OutgoingDelivery,
  body: Buffer,
  { version, preferredVersion, signal, timeoutMs = TIMEOUT_MS, attributes, traceParent, onAttempt }: AttemptOptions,
): Promise<AttemptResult> {
  const secrets = activeSecrets(target, clock.now());
  const preferred = secrets.find((secret) => secret.version === preferredVersion) ?? secrets[0];
  const signers = [preferred, ...secrets.filter((secret) => secret !== preferred)];
  const { deliveryId, sessionId, cursor } = delivery;
  const attempts: StoredAttempt[] = [];

  async function post(signer: SigningSecret): Promise<Omit<AttemptResult, 'attempts'> | undefined> {
    const at = clock.now();
    const attempt = delivery.attemptCount + attempts.length + 1;
    let result: Pick<WebhookAttempt, 'status' | 'error' | 'responseBody'>;
    let verdict: Verdict = 'failed';
    let wait = 0;
    const headers = headersOf({
      deliveryId,
      attempt,
      previousCursor: delivery.previousCursor,
      body,
      now: at,
      signer,
      // A secret that expires between the two POSTs must not sign the second.
      secrets: activeSecrets(target, at),
      version,
    });
    const took = metrics.attemptSeconds.startTimer();
    const span = tracing?.span(
      'deliver webhook',
      'client',
      {
        'http.request.method': 'POST',
        'http.request.resend_count': attempt - 1,
        'gen_ai.conversation.id': sessionId ?? undefined,
        'signalbox.organization.id': formatId('org', target.organizationId),
        'signalbox.webhook_delivery.id': deliveryId,
        ...attributes,
      },
      traceParent,
    );
    try {
      const response = await egress.request({
        url: target.url,
        method: 'POST',
        headers: { ...target.headers, ...headers },
        body,
        timeoutMs,
        maxResponseBytes: MAX_RESPONSE_BYTES,
        bodyMs: BODY_MS,
        signal,
        // Delivery is at least once in any case.
        repeatable: true,
      });
      const { status } = response;
      verdict = verdictOf(status);
      wait = retryAfterMs(status, response.headers['retry-after'], at);
      result = { status, error: errorOfStatus(status), responseBody: storableBody(response.body, target.headers) };
    } catch (error) {
      if (!(error instanceof EgressError) || signal.aborted) span?.end();
      if (!(error instanceof EgressError)) throw error;
      if (signal.aborted) return undefined;
      result = { status: null, error: error.kind satisfies EgressErrorKind, responseBody: null };
    }
    const durationMs = clock.now().getTime() - at.getTime();
    const sent = storedHeaders(headers, version);
    attempts.push({ attempt, at: at.toISOString(), durationMs, ...result, secretVersion: signer.version, sent });
    const { status, error } = result;
    took();
    onAttempt?.({ verdict, durationMs });
    metrics.attempts.inc({ outcome: verdict === 'failed' ? (error ?? verdict) : verdict });
    span?.end({ 'http.response.status_code': status ?? undefined }, error ?? undefined);
    const secretVersion = signer.version;
    log.info({ sessionId, deliveryId, cursor, attempt, status, error, durationMs, secretVersion }, 'delivery attempt');
    return { verdict, secretVersion: signer.version, retryAfterMs: wait };
  }

  let outcome: Omit<AttemptResult, 'attempts'> = {
    verdict: 'failed',
    secretVersion: preferred.version,
    retryAfterMs: 0,
  };
  for (const signer of signers) {
    if (!activeSecrets(target, clock.now()).includes(signer)) continue;
    const posted = await post(signer);
    if (!posted) break;
    outcome = posted;
    if (posted.verdict !== 'refused') break;
  }
  return { ...outcome, attempts };
}
