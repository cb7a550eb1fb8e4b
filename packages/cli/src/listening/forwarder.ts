// Forwards envelopes to a local receiver as the service delivers them: signed, in the order of each session and one at a time.
//
// A receiver that does not respond at all is probably being restarted, so its delivery is tried again every two seconds. One that responds
// with anything but 2xx is tried again after the first delays of production. Later deliveries of the session wait meanwhile. After
// the last retry the delivery is given up, and the next one shows the gap in `X-Service-Previous-Cursor`.
import { type Envelope, webhooks } from '@signalbox/client';
import type { WaitingClock } from '../time.ts';
import { newDeliveryId } from './delivery-id.ts';

/** One POST to the receiver. */
export interface Attempt {
  deliveryId: string;
  attempt: number;
  /** Null: there was no response. */
  status: number | null;
  /** Null: it was accepted. */
  error: 'connect' | 'timeout' | 'status' | null;
  durationMs: number;
  /** When it is tried again; null: it is not. */
  retryMs: number | null;
}

export interface ForwarderOptions {
  url: string;
  secret: string;
  clock: WaitingClock;
  onAttempt(envelope: Envelope, attempt: Attempt): void;
  signal: AbortSignal;
}

const SECOND_MS = 1_000;
const TIMEOUT_MS = 15 * SECOND_MS;
/** The first delays of production. At a terminal, longer ones are not worth waiting for. */
const RETRY_DELAYS_MS = [5 * SECOND_MS, 30 * SECOND_MS, 120 * SECOND_MS];
const RESTART_DELAY_MS = 2 * SECOND_MS;
const MAX_SESSIONS_AT_ONCE = 20;
// Beyond it the stream is not read on. The service keeps its place.
const MAX_WAITING = 1_000;

const ended = new Set(['completed', 'failed', 'cancelled']);

export class Forwarder {
  readonly #options: ForwarderOptions;
  /** The envelopes of a session that wait; the first is being sent. */
  readonly #queues = new Map<string, Envelope[]>();
  /** The last cursor that the receiver acknowledged, by session. */
  readonly #acknowledged = new Map<string, string>();
  readonly #waitingSessions: (() => void)[] = [];
  #sessionsAtOnce = 0;
  #waiting = 0;
  #room = Promise.withResolvers<void>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Resolves when there is room for the next one. */
  async accept(envelope: Envelope): Promise<void> {
    const queue = this.#queues.get(envelope.sessionId);
    this.#waiting += 1;
    if (queue) queue.push(envelope);
    else {
      this.#queues.set(envelope.sessionId, [envelope]);
      void this.#run(envelope.sessionId);
    }
    while (this.#waiting >= MAX_WAITING && !this.#options.signal.aborted) {
      this.#room = Promise.withResolvers();
      await this.#room.promise;
    }
  }

  async #run(sessionId: string): Promise<void> {
    if (this.#sessionsAtOnce >= MAX_SESSIONS_AT_ONCE) {
      await new Promise<void>((resolve) => this.#waitingSessions.push(resolve));
    }
    this.#sessionsAtOnce += 1;
    const queue = this.#queues.get(sessionId)!;
    for (let envelope = queue[0]; envelope && !this.#options.signal.aborted; envelope = queue[0]) {
      await this.#deliver(envelope);
      queue.shift();
      this.#waiting -= 1;
      this.#room.resolve();
    }
    this.#queues.delete(sessionId);
    this.#sessionsAtOnce -= 1;
    this.#waitingSessions.shift()?.();
  }

  async #deliver(envelope: Envelope): Promise<void> {
    const { clock, signal, onAttempt } = this.#options;
    const { sessionId, cursor } = envelope;
    const deliveryId = newDeliveryId(clock.now());
    const body = JSON.stringify(envelope);
    let retries = 0;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      const startedAt = clock.now();
      const outcome = await this.#post(sessionId, deliveryId, attempt, body);
      if (signal.aborted) return;
      const isOver = outcome.error === null || outcome.status === 410;
      const retryMs = isOver
        ? null
        : outcome.error === 'connect'
          ? RESTART_DELAY_MS
          : (RETRY_DELAYS_MS[retries] ?? null);
      onAttempt(envelope, { deliveryId, attempt, ...outcome, durationMs: clock.now() - startedAt, retryMs });
      if (outcome.error === null) this.#acknowledge(envelope, cursor);
      if (retryMs === null) return;
      if (outcome.error !== 'connect') retries += 1;
      await this.#sleep(retryMs);
    }
  }

  /** With its own place, so that a session that waits does not keep others from being sent. */
  async #sleep(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    this.#sessionsAtOnce -= 1;
    this.#waitingSessions.shift()?.();
    await clock.sleep(ms, signal).catch(() => {});
    this.#sessionsAtOnce += 1;
  }

  #acknowledge({ sessionId, chunks }: Envelope, cursor: string): void {
    const isEnd = chunks.some((chunk) => chunk.type === 'session.status' && ended.has(chunk.status));
    if (isEnd) this.#acknowledged.delete(sessionId);
    else this.#acknowledged.set(sessionId, cursor);
  }

  async #post(
    sessionId: string,
    deliveryId: string,
    attempt: number,
    body: string,
  ): Promise<Pick<Attempt, 'status' | 'error'>> {
    const { url, secret, clock, signal } = this.#options;
    const headers = await webhooks.sign(body, {
      secret,
      deliveryId,
      attempt,
      previousCursor: this.#acknowledged.get(sessionId),
      now: () => new Date(clock.now()),
    });
    const over = new AbortController();
    let isLate = false;
    const late = () => {
      isLate = true;
      over.abort();
    };
    clock.sleep(TIMEOUT_MS, over.signal).then(late, () => {});
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body,
        redirect: 'manual',
        signal: AbortSignal.any([signal, over.signal]),
      });
      await response.body?.cancel();
      return { status: response.status, error: response.ok ? null : 'status' };
    } catch {
      return { status: null, error: isLate ? 'timeout' : 'connect' };
    } finally {
      over.abort();
    }
  }
}
