// The environments that the operator lets use the identity of the machine (SIGNALBOX_CLOUD_IDENTITIES).
import sql, { type Sql } from 'sql-template-tag';
import type { IdentityEnvironment } from '../vault/cloud-identities.ts';

/** The listed environments that do not exist, perhaps because they are misspelt. */
export async function unknownEnvironments(
  query: (statement: Sql) => Promise<{ organizationId: string; name: string }[]>,
  listed: readonly IdentityEnvironment[],
): Promise<IdentityEnvironment[]> {
  if (listed.length === 0) return [];
  const ids = [...new Set(listed.map(({ organizationId }) => organizationId))];
  const rows = await query(sql`
    select organization_id as "organizationId", name from environments where organization_id = any(${ids}::uuid[])`);
  const known = new Set(rows.map(({ organizationId, name }) => `${organizationId}/${name}`));
  return listed.filter(({ organizationId, environment }) => !known.has(`${organizationId}/${environment}`));
}
