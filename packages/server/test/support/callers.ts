// Callers of domain functions: members of the organization and its API keys, with their rows.
import { type Role, scopesOfPermission, scopesOfRole } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { createKey } from '../../src/keys/keys.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { type DecidingLimits, noLimits, storedRole } from '../../src/people/memberships/can-decide.ts';

/** A member of the organization. `on`: a context on the node that the requests go to. */
export async function asPerson(
  on: PoolContext,
  name: string,
  role: Role,
  limits: DecidingLimits = noLimits,
): Promise<PoolContext> {
  const userId = newUuid();
  const access = { role, ...limits };
  await on.db.execute(sql`
    insert into members (organization_id, user_id, role, decides_agents, decides_environments, joined_at)
    values (${on.organizationId}, ${userId}, ${storedRole(access)}, ${limits.decidesAgents}, ${limits.decidesEnvironments},
      ${on.clock.now()})`);
  return {
    ...on,
    actor: { type: 'user', id: formatId('usr', userId), name },
    callerId: userId,
    keyId: null,
    person: { userId, name, email: `${name}@example.com`, ...access },
    scopes: scopesOfRole[role],
  };
}

/** An API key that the caller creates. */
export async function asKeyOf(creator: PoolContext, name: string): Promise<PoolContext> {
  const { apiKey } = await createKey(creator, { name, permission: 'admin' });
  const keyId = uuidOf('key', apiKey.keyId);
  const [row] = await creator.db.query<{ createdBy: string[] }>(sql`
    select created_by as "createdBy" from api_keys
    where organization_id = ${creator.organizationId} and key_id = ${keyId}`);
  const { person: _, ...rest } = creator;
  return {
    ...rest,
    actor: { type: 'api_key', id: apiKey.keyId, name },
    callerId: keyId,
    keyId,
    keyCreatedBy: row!.createdBy,
    scopes: scopesOfPermission.admin,
  };
}

/** The same caller, served by another node. */
export function via(node: Partial<PoolContext>, caller: PoolContext): PoolContext {
  return { ...caller, ...node };
}
