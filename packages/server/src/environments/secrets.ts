// Secrets of an environment. A value is sealed at rest, is never returned, and is inserted only into requests whose host is in
// `allowedHosts`, a list that only `admin` may change.
import { isIPv4 } from 'node:net';
import type { EnvironmentSecret, Input, Result } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import { changesBetween, recordEvent } from '../events/record.ts';
import { invalidField, notFound, type OnlyCreate, requireNewName } from '../lib/api-error.ts';
import { type Context, inTransaction, type PoolContext } from '../lib/context.ts';
import { type IsKey, pageOf, pageRequest } from '../lib/page.ts';
import type { Platform } from '../platform.ts';
import { lockEnvironment } from './environments.ts';

interface Row {
  name: string;
  allowedHosts: string[];
  version: number;
  updatedAt: Date;
}

const isKey: IsKey = (text) => /^[A-Z][A-Z0-9_]{0,63}$/.test(text);

/** By name. */
export async function listSecrets(ctx: PoolContext, input: Input<'listSecrets'>): Promise<Result<'listSecrets'>> {
  const { organizationId } = ctx;
  const request = pageRequest(`secrets:${organizationId}:${input.env}`, input, { isKey });
  await inTransaction(ctx, (tx) => lockEnvironment(tx, organizationId, input.env));
  const rows = await ctx.db.query<Row>(sql`
    select name, allowed_hosts as "allowedHosts", version, updated_at as "updatedAt" from environment_secrets
    where organization_id = ${organizationId} and environment = ${input.env}
      ${request.after === undefined ? empty : sql`and name > ${request.after}`}
    order by name limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.name, secretFromRow);
}

/** Sets value and hosts together, and increments the version. */
export async function setSecret(ctx: Context, input: Input<'setSecret'> & OnlyCreate): Promise<Result<'setSecret'>> {
  const { organizationId, vault } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    // Serialized, so that the log has the previous state of each change.
    await lockEnvironment(tx, organizationId, input.env, sql`for no key update`);
    const [before] = await tx.query<Row>(sql`
      select name, allowed_hosts as "allowedHosts", version, updated_at as "updatedAt" from environment_secrets
      where organization_id = ${organizationId} and environment = ${input.env} and name = ${input.name} for update`);
    requireNewName(input, before !== undefined, 'name', 'secret');
    const now = ctx.clock.now();
    const allowedHosts = input.allowedHosts.map(canonicalHost);
    const sealed = vault.seal('environment_secret', [organizationId, input.env, input.name], input.value);
    const [row] = await tx.query<Row>(sql`
      insert into environment_secrets as s
        (organization_id, environment, name, sealed_value, allowed_hosts, version, updated_at)
      values (${organizationId}, ${input.env}, ${input.name}, ${sealed}, ${allowedHosts}, 1, ${now})
      on conflict (organization_id, environment, name) do update
        set sealed_value = excluded.sealed_value, allowed_hosts = excluded.allowed_hosts, version = s.version + 1,
          updated_at = excluded.updated_at
      returning s.name, s.allowed_hosts as "allowedHosts", s.version, s.updated_at as "updatedAt"`);
    await tx.query(
      recordEvent(ctx, now, {
        type: 'environment_secret.set',
        resource: { type: 'environment_secret', id: input.name },
        environment: input.env,
        changes: changesBetween<Partial<Row>>(before ?? {}, row!, ['version', 'allowedHosts']),
      }),
    );
    return { secret: secretFromRow(row!) };
  });
}

/** 404 if there is no secret of this name. */
export async function deleteSecret(ctx: Context, input: Input<'deleteSecret'>): Promise<Result<'deleteSecret'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const deleted = await tx.execute(sql`
      delete from environment_secrets
      where organization_id = ${ctx.organizationId} and environment = ${input.env} and name = ${input.name}`);
    if (deleted === 0) throw notFound('secret');
    await tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'environment_secret.deleted',
        resource: { type: 'environment_secret', id: input.name },
        environment: input.env,
      }),
    );
    return { name: input.name, deleted: true };
  });
}

/** A secret that a request may use. */
export interface OpenedSecret {
  value: string;
  allowedHosts: string[];
}

/** Decrypts those of the named secrets that exist. The caller must send a value only to its allowed hosts. */
export async function openSecrets(
  { db, vault }: Pick<Platform, 'db' | 'vault'>,
  organizationId: string,
  environment: string,
  names: readonly string[],
): Promise<Map<string, OpenedSecret>> {
  if (names.length === 0) return new Map();
  const rows = await db.query<{ name: string; sealedValue: Buffer; allowedHosts: string[] }>(sql`
    select name, sealed_value as "sealedValue", allowed_hosts as "allowedHosts" from environment_secrets
    where organization_id = ${organizationId} and environment = ${environment} and name = any(${[...names]}::text[])`);
  return new Map(
    rows.map(({ name, sealedValue, allowedHosts }) => [
      name,
      { value: vault.open('environment_secret', [organizationId, environment, name], sealedValue), allowedHosts },
    ]),
  );
}

/** An entry in the form of a URL's host; 400 if it is not a host and would allow nothing. */
export function canonicalHost(given: string, index = 0): string {
  const [, below = '', name = '', port] = /^(\*\.)?(\[[^\]]*\]|[^:]*)(?::([0-9]+))?$/.exec(given.toLowerCase()) ?? [];
  const host = URL.parse(`http://${name}/`)?.hostname;
  const path = `allowedHosts[${index}]`;
  // The parser would read text before an @ as a user name, and would end the host at a / or #.
  if (!host || /[/\\?#@*\s]/.test(name)) throw invalidField(path, 'is not a valid host');
  if (below && (host.startsWith('[') || isIPv4(host)))
    throw invalidField(path, 'is a wildcard of an address; wildcards are for host names only');
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535)) {
    throw invalidField(path, 'has a port outside of 1 to 65535');
  }
  return `${below}${host}${port === undefined ? '' : `:${Number(port)}`}`;
}

/** Whether a request to `url` may contain the secret: its host is listed, exactly or by `*.`, with its port if the entry has one. */
export function isAllowedHost(allowedHosts: readonly string[], url: URL): boolean {
  const host = url.hostname.replace(/\.$/, '');
  const port = url.port || (url.protocol === 'http:' ? '80' : '443');
  return allowedHosts.some((allowed) => {
    const [, name = '', onlyPort] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]+))?$/.exec(allowed) ?? [];
    if (onlyPort !== undefined && onlyPort !== port) return false;
    // `*.example.com` matches every name below example.com, but not example.com itself.
    return name.startsWith('*.') ? host.endsWith(name.slice(1)) && host.length >= name.length : host === name;
  });
}

function secretFromRow(row: Row): EnvironmentSecret {
  return { ...row, updatedAt: row.updatedAt.toISOString() };
}
