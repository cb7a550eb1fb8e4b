// Signing secrets at rest: sealed for their subscription and version, so that none opens in another's place.
import type { Vault } from '../../vault/vault.ts';

/** Whose secret it is, and which of its secrets. */
export interface SecretPlace {
  organizationId: string;
  environment: string;
  webhookSubscriptionId: string;
  secretVersion: number;
}

export function sealSecret(vault: Vault, place: SecretPlace, secret: string): Buffer {
  return vault.seal('signing_secret', partsOf(place), secret);
}

/** Throws `CannotOpen`. */
export function openSecret(vault: Vault, place: SecretPlace, sealed: Buffer): string {
  return vault.open('signing_secret', partsOf(place), sealed);
}

function partsOf({ organizationId, environment, webhookSubscriptionId, secretVersion }: SecretPlace): string[] {
  return [organizationId, environment, webhookSubscriptionId, String(secretVersion)];
}
