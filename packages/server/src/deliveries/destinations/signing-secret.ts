// Signing secrets at rest, sealed for their subscription or destination and version, so that one can't be substituted for another.
import type { Vault } from '../../vault/vault.ts';

/** The subscription that a secret belongs to, and its version. */
export interface SubscriptionSecret {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  secretVersion: number;
}

/** The destination that a secret belongs to, and its version. */
export interface DestinationSecret {
  organizationId: string;
  destinationId: string;
  secretVersion: number;
}

export type SecretIdentity = SubscriptionSecret | DestinationSecret;

export function sealSecret(vault: Vault, identity: SecretIdentity, secret: string): Buffer {
  return vault.seal('signing_secret', sealedFor(identity), secret);
}

/** Throws `CannotOpen`. */
export function openSecret(vault: Vault, identity: SecretIdentity, sealed: Buffer): string {
  return vault.open('signing_secret', sealedFor(identity), sealed);
}

function sealedFor(identity: SecretIdentity): string[] {
  const { organizationId, secretVersion } = identity;
  const owner =
    'destinationId' in identity ? [identity.destinationId] : [identity.environment, identity.webhookSubscriptionId];
  return [organizationId, ...owner, String(secretVersion)];
}
