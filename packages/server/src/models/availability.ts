// Which models are unavailable, as this node has found. Sessions share it, so an outage costs one call at a time, not one of each.
//
// A model that has timed out, or has failed five times in a row, is not called for a while. Calls of it fail at once, as the last
// one did: their turns use a fallback without waiting for a time-out that takes minutes, or their sessions are parked. Then one call
// tries whether the model is back; the others still fail until that has responded. A call that a person waits for may try it
// during the pause as well: one at a time, and at most one a second.
//
// Environments do not share it: each has its own keys, and a base URL may be that of one customer's server. Nodes share only that a
// model is back (recovery.ts): each makes its own attempts, and nothing is stored.
import { createHash } from 'node:crypto';
import { exponentialMs } from '../lib/back-off.ts';
import type { Clock } from '../lib/clock.ts';
import { type AskModel, type ModelCall, ModelFailure } from './model/model.ts';

interface Trouble {
  /** In a row. */
  failures: number;
  last: ModelFailure;
  /** 0: it is still called. */
  pauseMs: number;
  until: number;
  isTried: boolean;
  /** When the last call was made, or the pause began. */
  triedAt: number;
}

// As many as a session makes before it is parked: a few failures among many responses are normal.
const MAX_FAILURES = 5;
// The waits are those of a parked session, which comes back soon after them.
const FIRST_PAUSE_MS = 15_000;
const MAX_PAUSE_MS = 150_000;
// Between the calls of people: one of them waits for that long, and the others fail meanwhile.
const MIN_TRIAL_GAP_MS = 1_000;
// Bounds memory: agents can name any number of models. The oldest is forgotten, and found again.
const MAX_MODELS = 1_000;

/** What follows when a model that was unavailable is back. */
export interface Recovery {
  /** It has begun to respond to this call: the first after a pause, or of a session that was parked. */
  responded(call: ModelCall, model: string): void;
  /** Calls the listener when it has responded to another node. */
  onElsewhere(listener: (model: string) => void): void;
}

/** Calls models only as long as they are available. */
export function createAvailability(
  clock: Pick<Clock, 'now' | 'sleep'>,
  recovery?: Recovery,
): (ask: AskModel) => AskModel {
  const troubles = new Map<string, Trouble>();
  recovery?.onElsewhere(endPause);

  /** The next failure begins another, unless a response was complete before. */
  function endPause(key: string): void {
    const trouble = troubles.get(key);
    if (trouble) trouble.pauseMs = 0;
  }

  function record(key: string, last: ModelFailure, isTrial: boolean): void {
    const before = troubles.get(key);
    // Calls that were made before the pause say nothing new.
    if (before && before.pauseMs > 0 && !isTrial) return;
    const now = clock.now().getTime();
    if (before && before.pauseMs > 0 && before.until > now) {
      // A trial within the pause does not lengthen it: else people who retry would delay the sessions that wait.
      before.last = last;
      before.until = Math.max(before.until, now + (last.retryAfterMs ?? 0));
      return;
    }
    const failures = Math.max((before?.failures ?? 0) + 1, last.code === 'model_timeout' ? MAX_FAILURES : 0);
    const backOffMs =
      failures < MAX_FAILURES ? 0 : exponentialMs(failures - MAX_FAILURES + 1, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    const pauseMs = backOffMs > 0 ? Math.max(backOffMs, last.retryAfterMs ?? 0) : 0;
    troubles.delete(key);
    troubles.set(key, { failures, last, pauseMs, until: now + pauseMs, isTried: false, triedAt: now });
    if (troubles.size > MAX_MODELS) troubles.delete(troubles.keys().next().value!);
  }

  return (ask) =>
    async function* askIfAvailable(call, signal) {
      const key = keyOf(call);
      const trouble = troubles.get(key);
      const isTrial = trouble !== undefined && trouble.pauseMs > 0;
      let gapMs = 0;
      if (isTrial) {
        const now = clock.now().getTime();
        const leftMs = trouble.until - now;
        if (trouble.isTried || (leftMs > 0 && !call.isAwaited))
          throw skipped(trouble.last, leftMs > 0 ? leftMs : trouble.pauseMs);
        trouble.isTried = true;
        if (leftMs > 0) gapMs = trouble.triedAt + MIN_TRIAL_GAP_MS - now;
      }
      let hasResponded = false;
      try {
        // A person who asks a moment after a failed trial gets an answer that is true now.
        if (gapMs > 0) await clock.sleep(gapMs, signal);
        if (isTrial) trouble.triedAt = clock.now().getTime();
        for await (const event of ask(call, signal)) {
          if (!hasResponded && (isTrial || call.wasParked)) {
            endPause(key);
            recovery?.responded(call, key);
          }
          hasResponded = true;
          if (event.type === 'finish') troubles.delete(key);
          yield event;
        }
      } catch (error) {
        // One that waits for a limit of its environment says nothing about the model.
        if (!signal.aborted && error instanceof ModelFailure && !error.isSkipped) {
          if (isUnavailable(error)) record(key, error, isTrial);
          else troubles.delete(key);
        }
        throw error;
      } finally {
        // Also if its turn was stopped: the next call tries it.
        if (isTrial) trouble.isTried = false;
      }
    };
}

function isUnavailable({ code }: ModelFailure): boolean {
  return code === 'model_timeout' || code === 'model_unavailable';
}

function skipped({ code, message }: ModelFailure, retryAfterMs: number): ModelFailure {
  return new ModelFailure(code, message, { retryable: true, retryAfterMs, isSkipped: true });
}

function keyOf({ organizationId, environment, config }: ModelCall): string {
  const { provider, model, baseUrl, apiKeySecret } = config;
  const named = JSON.stringify([organizationId, environment, provider, model, baseUrl, apiKeySecret]);
  return createHash('sha256').update(named).digest('base64url');
}
