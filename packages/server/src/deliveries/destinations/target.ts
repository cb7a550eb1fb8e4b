// What deliveries are sent to, whatever they contain.
import type { SigningSecret } from './signing.ts';

/** Where deliveries are sent, and how they are signed. */
export interface Target {
  organizationId: string;
  url: string;
  /** Headers of its owner, with names in lower case; their values are secrets. */
  headers?: Readonly<Record<string, string>>;
  secret: SigningSecret;
  /** During the grace period of a rotation deliveries are signed with this secret too. */
  previous: { secret: SigningSecret; expiresAt: Date } | undefined;
}

/** All secrets to sign with now, the newest first. */
export function activeSecrets(
  { secret, previous }: Pick<Target, 'secret' | 'previous'>,
  now: Date,
): [SigningSecret, ...SigningSecret[]] {
  return previous && previous.expiresAt > now ? [secret, previous.secret] : [secret];
}
