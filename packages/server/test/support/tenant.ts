// A second organization, next to the one that the service creates.

import { systemActor } from '../../src/events/record.ts';
import { insertKey } from '../../src/keys/keys.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { type TestService, watchSecret } from './service.ts';

export interface Tenant {
  organizationId: string;
  /** The context of an admin key. */
  key: string;
}

export async function createTenant({ db }: TestService): Promise<Tenant> {
  return db.transaction(async (tx) => {
    const { organizationId } = await createOrganization(tx, 'Other', new Date());
    const source = { organizationId, actor: systemActor, requestId: null, ipAddress: null, userAgent: null };
    const { secret } = await insertKey(tx, source, new Date(), { name: 'k', permission: 'admin' });
    watchSecret(secret!);
    return { organizationId, key: secret! };
  });
}
