// The caller, as `GET /me` describes it.
import { permissionWith, type Result, scopes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Context } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import { getKey } from './keys.ts';

export async function getMe(ctx: Context): Promise<Result<'getMe'>> {
  const [organization] = await ctx.db.query<{ name: string }>(
    sql`select name from organizations where organization_id = ${ctx.organizationId}`,
  );
  const { person } = ctx;
  const apiKey = ctx.keyId ? (await getKey(ctx, { keyId: formatId('key', ctx.keyId) })).apiKey : null;
  return {
    organization: { organizationId: formatId('org', ctx.organizationId), name: organization!.name },
    apiKey,
    user: person ? { userId: formatId('usr', person.userId), name: person.name, email: person.email } : null,
    permission: person ? permissionWith(ctx.scopes) : apiKey!.permission,
    scopes: scopes.filter((scope) => ctx.scopes.has(scope)),
  };
}
