// What the operator of an installation does with its organizations over HTTP (http/operator.ts).
import type { OperatorInput, OperatorResult } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import { insertKey } from '../keys/keys.ts';
import { notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { type Row, viewOrganization } from './manage.ts';
import { foundOrganization } from './organizations.ts';

/** All organizations, newest first. */
export async function listOrganizations(
  ctx: Pick<Context, 'db' | 'prices'>,
  input: OperatorInput<'listOrganizations'>,
): Promise<OperatorResult<'listOrganizations'>> {
  const request = pageRequest('organizations', input);
  const rows = await ctx.db.query<Row & { organizationId: string }>(sql`
    select organization_id as "organizationId", name, allowed_origins as "allowedOrigins", created_at as "createdAt"
    from organizations ${request.after === undefined ? empty : sql`where organization_id < ${request.after}`}
    order by organization_id desc limit ${request.limit + 1}`);
  return pageOf(
    request,
    rows,
    ({ organizationId }) => organizationId,
    (row) => viewOrganization({ ...ctx, organizationId: row.organizationId }, row),
  );
}

/** Creates an organization without people and keys. Two calls create two, whatever their names. */
export async function createOrganization(
  ctx: Context,
  { name }: OperatorInput<'createOrganization'>,
): Promise<OperatorResult<'createOrganization'>> {
  const now = ctx.clock.now();
  const { organizationId } = await inTransaction(ctx, (tx, ctx) => foundOrganization(tx, ctx, now, name));
  const row = { name, allowedOrigins: [], createdAt: now };
  return { organization: viewOrganization({ ...ctx, organizationId }, row) };
}

/** Throws 404 if there is no such organization. */
export async function requireOrganization({ db, organizationId }: Context): Promise<void> {
  const rows = await db.query(sql`select 1 from organizations where organization_id = ${organizationId}`);
  if (rows.length === 0) throw notFound('organization');
}

/** Creates a key of the context's organization. Throws like `createKey`, except for 403. */
export async function createOrganizationKey(
  ctx: Context,
  { organizationId: _, ...key }: OperatorInput<'createOrganizationKey'>,
): Promise<OperatorResult<'createOrganizationKey'>> {
  return { apiKey: await inTransaction(ctx, (tx, ctx) => insertKey(tx, ctx, ctx.clock.now(), key)) };
}
