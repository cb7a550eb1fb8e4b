// Another organization of a service.
import { systemSource } from '../../src/events/record.ts';
import { insertKey } from '../../src/keys/keys.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { type TestService, watchSecret } from './service.ts';

/** Creates an organization with an admin key, and returns the key's secret. */
export async function addOrganization(service: TestService, name: string): Promise<string> {
  const { secret } = await service.db.transaction(async (tx) => {
    const now = new Date();
    const { organizationId } = await createOrganization(tx, name, now);
    return insertKey(tx, systemSource(organizationId), now, { name, permission: 'admin' });
  });
  watchSecret(secret!);
  return secret!;
}
