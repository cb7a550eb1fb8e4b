// Callers as columns name them that record who did something: `user:` or `api_key:` and the id.
import type { Context } from './context.ts';

export const userIdentity = (userId: string) => `user:${userId}`;
export const keyIdentity = (keyId: string) => `api_key:${keyId}`;

/** The caller; of a session token its key. Empty if the service acts by itself. */
export function identitiesOf({ person, keyId }: Pick<Context, 'person' | 'keyId'>): string[] {
  if (person) return [userIdentity(person.userId)];
  return keyId === null ? [] : [keyIdentity(keyId)];
}

export const userIdsIn = (identities: readonly string[]) => idsIn(identities, 'user:');
export const keyIdsIn = (identities: readonly string[]) => idsIn(identities, 'api_key:');

function idsIn(identities: readonly string[], prefix: string): string[] {
  return identities.flatMap((one) => (one.startsWith(prefix) ? [one.slice(prefix.length)] : []));
}
