// The secrets of destinations for `sealed-secrets.ts`: their signing secrets, and the values of their own headers.
import { randomBytes } from 'node:crypto';
import { signingSecretPrefix } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { openSecret, sealSecret } from '../deliveries/destinations/signing-secret.ts';
import { openHeaders, sealHeaders } from '../destinations/destination/headers.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { systemClock } from '../lib/clock.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { CannotOpen, KEY_ID_PLACE, keyIdOf, type Vault } from '../vault/vault.ts';
import type { UnreadableSecret } from './sealed-secrets.ts';

interface Sealed {
  destinationId: string;
  secretVersion: number;
  secret: Buffer;
  previous: Buffer | null;
  /** Whether the previous secret still signs. */
  previousCounts: boolean;
  headers: Buffer | null;
}

/** Seals them under the first master key. There are at most a hundred of an organization. */
export async function resealDestinations(
  db: Db,
  vault: Vault,
  organizationId: string,
  seen: (count: number) => void,
): Promise<UnreadableSecret[]> {
  const { from, length } = KEY_ID_PLACE;
  const newest = keyIdOf(vault.fingerprints[0]!);
  const rows = await db.query<Sealed>(sql`
    select destination_id as "destinationId", secret_version as "secretVersion", sealed_secret as secret,
      previous_sealed_secret as previous, coalesce(previous_secret_expires_at > ${systemClock.now()}, false) as "previousCounts",
      sealed_headers as headers
    from destinations
    where organization_id = ${organizationId}
      and (substring(sealed_secret from ${from} for ${length}) <> ${newest}
        or substring(previous_sealed_secret from ${from} for ${length}) <> ${newest}
        or substring(sealed_headers from ${from} for ${length}) <> ${newest})
    order by destination_id`);
  const unreadable: UnreadableSecret[] = [];
  const count = await db.transaction(async (tx) => {
    let updated = 0;
    for (const row of rows) {
      const again = resealed(vault, { organizationId, ...row });
      if (!again) {
        unreadable.push(nameOf(organizationId, row.destinationId));
        continue;
      }
      // Unless it was changed meanwhile.
      updated += await tx.execute(sql`
        update destinations set sealed_secret = ${again.secret}, previous_sealed_secret = ${again.previous},
          sealed_headers = ${again.headers}
        where organization_id = ${organizationId} and destination_id = ${row.destinationId} and sealed_secret = ${row.secret}
          and previous_sealed_secret is not distinct from ${row.previous}
          and sealed_headers is not distinct from ${row.headers}`);
    }
    return updated;
  });
  seen(count);
  return unreadable;
}

/** Undefined if no key opens all of it. */
function resealed(
  vault: Vault,
  row: Sealed & { organizationId: string },
): Pick<Sealed, 'secret' | 'previous' | 'headers'> | undefined {
  const before = { ...row, secretVersion: row.secretVersion - 1 };
  try {
    return {
      secret: sealSecret(vault, row, openSecret(vault, row, row.secret)),
      // One that has expired is dropped.
      previous:
        row.previous && row.previousCounts ? sealSecret(vault, before, openSecret(vault, before, row.previous)) : null,
      headers: sealHeaders(vault, row, openHeaders(vault, row, row.headers)),
    };
  } catch (error) {
    if (error instanceof CannotOpen) return undefined;
    throw error;
  }
}

/** By the id of the key, without opening anything. */
export async function findUnreadableDestinations(
  db: Db,
  organizationId: string,
  keyIds: readonly Buffer[],
): Promise<UnreadableSecret[]> {
  const { from, length } = KEY_ID_PLACE;
  const ids = [...keyIds];
  const rows = await db.query<{ id: string }>(sql`
    select destination_id as id from destinations
    where organization_id = ${organizationId}
      and (substring(sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])
        or substring(sealed_headers from ${from} for ${length}) <> all(${ids}::bytea[])
        or previous_secret_expires_at > ${systemClock.now()}
          and substring(previous_sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[]))
    order by destination_id`);
  return rows.map(({ id }) => nameOf(organizationId, id));
}

/** Replaces the signing secret by an unknown one, deletes the headers, and pauses the destination. */
export async function replaceDestinationSecrets(
  db: Db,
  vault: Vault,
  { organizationId, name }: UnreadableSecret,
): Promise<void> {
  const destinationId = uuidOf('dst', name);
  await db.transaction(async (tx) => {
    const [row] = await tx.query<{ secretVersion: number; status: string; environment: string | null }>(sql`
      select secret_version as "secretVersion", status, environment from destinations
      where organization_id = ${organizationId} and destination_id = ${destinationId} for update`);
    if (!row) return;
    const now = systemClock.now();
    const secretVersion = row.secretVersion + 1;
    const secret = `${signingSecretPrefix}${randomBytes(32).toString('base64')}`;
    await tx.query(sql`
      update destinations set sealed_secret = ${sealSecret(vault, { organizationId, destinationId, secretVersion }, secret)},
        secret_version = ${secretVersion}, previous_sealed_secret = null, previous_secret_expires_at = null,
        sealed_headers = null, header_names = '{}', status = case status when 'enabled' then 'paused' else status end,
        node_id = null, epoch = epoch + 1, updated_at = ${now}
      where organization_id = ${organizationId} and destination_id = ${destinationId}`);
    const about = { resource: { type: 'destination', id: name }, environment: row.environment };
    const source = systemSource(organizationId);
    const changes = { secretVersion: [row.secretVersion, secretVersion] as [unknown, unknown] };
    await tx.query(recordEvent(source, now, { type: 'destination.secret_rotated', ...about, changes }));
    if (row.status !== 'enabled') return;
    const paused = { status: ['enabled', 'paused'] as [unknown, unknown] };
    await tx.query(recordEvent(source, now, { type: 'destination.updated', ...about, changes: paused }));
  });
}

function nameOf(organizationId: string, destinationId: string): UnreadableSecret {
  return { organizationId, environment: null, kind: 'destination_secret', name: formatId('dst', destinationId) };
}
