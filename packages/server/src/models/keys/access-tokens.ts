// Tokens that authenticate requests for a while, in place of the key that they were requested with. They are kept in memory only.
import type { Clock } from '../../lib/clock.ts';
import { ModelFailure } from '../model/model.ts';
import { recordIn } from './token-request.ts';

export interface AccessToken {
  readonly value: string;
  /** In milliseconds since 1970. */
  readonly expiresAt: number;
}

export interface AccessTokens {
  /** Many calls at once share one request. `id`: all that the token depends on, and for whom it is. */
  get(id: string, request: () => Promise<AccessToken>): Promise<AccessToken>;
  /** Its server refuses it. False: it was just requested, so another would be refused as well. */
  expire(id: string, value: string): boolean;
}

/** A token is replaced before its end, so that no call begins with one that ends on the way. */
const EARLY_MS = 300_000;
/** An early replacement that failed is not tried again for this time. */
const RETRY_MS = 10_000;
/** A token that was refused this soon was never valid. */
const NEW_MS = 30_000;
const MAX_KEPT = 1_000;

interface Kept {
  token?: AccessToken;
  requestedAt: number;
  pending?: Promise<AccessToken> | undefined;
}

export function createAccessTokens(clock: Pick<Clock, 'now'>): AccessTokens {
  const kept = new Map<string, Kept>();
  const now = () => clock.now().getTime();

  function entryOf(id: string): Kept {
    const known = kept.get(id);
    if (known) return known;
    for (const [other, { token, pending }] of kept) {
      if (kept.size >= MAX_KEPT || (!pending && (token?.expiresAt ?? 0) <= now())) kept.delete(other);
    }
    const entry: Kept = { requestedAt: 0 };
    kept.set(id, entry);
    return entry;
  }

  function request(entry: Kept, ask: () => Promise<AccessToken>): Promise<AccessToken> {
    entry.requestedAt = now();
    entry.pending = ask()
      .then((token) => {
        entry.token = token;
        return token;
      })
      .finally(() => {
        entry.pending = undefined;
      });
    return entry.pending;
  }

  return {
    async get(id, ask) {
      const entry = entryOf(id);
      const { token, requestedAt } = entry;
      const leftMs = (token?.expiresAt ?? 0) - now();
      const isValid = token !== undefined && leftMs > RETRY_MS;
      const isEarly = isValid && (leftMs > EARLY_MS || now() - requestedAt < RETRY_MS);
      if (isEarly) return token;
      const next = entry.pending ?? request(entry, ask);
      // Until its end, no call depends on whether the next one can be had now.
      return isValid ? await next.catch(() => token) : await next;
    },
    expire(id, value) {
      const entry = kept.get(id);
      if (entry?.token?.value !== value) return true;
      delete entry.token;
      return now() - entry.requestedAt > NEW_MS;
    },
  };
}

/** The token in the response of a token endpoint (RFC 6749, 5.1). Throws `model_protocol`. */
export function tokenIn(body: string, from: string, now: number): AccessToken {
  const { access_token: value, expires_in: seconds } = recordIn(body);
  const lifetime = Number(seconds ?? 3600);
  if (!isToken(value) || !(lifetime > 0)) throw noToken(from);
  return { value, expiresAt: now + lifetime * 1000 };
}

export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,20000}$/.test(value);
}

export function noToken(from: string): ModelFailure {
  return new ModelFailure('model_protocol', `${from} responded with no token`, { retryable: true });
}
