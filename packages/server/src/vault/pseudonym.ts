// Pseudonyms of end users: what is stored of an id that must be able to disappear.
//
// The event log is one chain of hashes, so a record can't be changed when an end user is erased. It therefore has a pseudonym instead of
// the id: a hash under a key that is derived from the master key. Two records of the same end user have the same
// pseudonym, and the service can find those of an id that it is given. Without the key, an id can't be guessed from its pseudonym, as it could
// from a plain hash: most ids are numbers or email addresses.
import { createHmac } from 'node:crypto';
import type { Vault } from './vault.ts';

const BYTES = 16;

export function pseudonymOf(vault: Vault, organizationId: string, endUserId: string): Buffer {
  return underKey(vault.derive('end_user'), organizationId, endUserId);
}

/** The pseudonyms under every master key, the first one first: a replaced key leaves pseudonyms behind. */
export function pseudonymsOf(vault: Vault, organizationId: string, endUserId: string): Buffer[] {
  return vault.deriveAll('end_user').map((key) => underKey(key, organizationId, endUserId));
}

function underKey(key: Buffer, organizationId: string, endUserId: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([organizationId, endUserId]))
    .digest()
    .subarray(0, BYTES);
}
