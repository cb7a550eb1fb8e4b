// Signing secrets at rest, sealed for their subscription and version, so that one can't be substituted for another.
import type { Vault } from '../../vault/vault.ts';

/** The subscription that a secret belongs to, and its version. */
export interface SecretIdentity {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  secretVersion: number;
}

export function sealSecret(vault: Vault, identity: SecretIdentity, secret: string): Buffer {
  return vault.seal('signing_secret', sealedFor(identity), secret);
}

/** Throws `CannotOpen`. */
export function openSecret(vault: Vault, identity: SecretIdentity, sealed: Buffer): string {
  return vault.open('signing_secret', sealedFor(identity), sealed);
}

function sealedFor({ organizationId, environment, webhookSubscriptionId, secretVersion }: SecretIdentity): string[] {
  return [organizationId, environment, webhookSubscriptionId, String(secretVersion)];
}
