// Tokens that the operator sets in the environment, for metrics and for their own routes.
import { createHash, timingSafeEqual } from 'node:crypto';

/** What the header has after `Bearer`; undefined if it has another form. */
export function bearerIn(authorization: string | undefined): string | undefined {
  return /^Bearer +([^\s]+)$/i.exec(authorization?.trim() ?? '')?.[1];
}

/** Takes as long whatever is given. */
export function isSameToken(given: string, token: string): boolean {
  const [one, other] = [given, token].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one!, other!);
}
