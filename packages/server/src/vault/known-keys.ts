// Before the service does anything: is every sealed value of this database one that its master keys open? With a wrong key all
// would seem well until a secret is needed, and what is sealed meanwhile would be lost to whoever brings the right key back.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { KEY_ID_PLACE, type Vault } from './vault.ts';

/** The message says what to do. */
export class MasterKeyUnknown extends Error {
  override readonly name = 'MasterKeyUnknown';
}

/** Throws `MasterKeyUnknown` where something was sealed by a key that is none of the vault's. */
export async function requireKnownKeys(db: Db, vault: Vault, now: Date): Promise<void> {
  const { from, length } = KEY_ID_PLACE;
  const ids = [...vault.keyIds];
  const found = await db.batch<unknown>([
    sql`
      select 1 from environment_secrets
      where substring(sealed_value from ${from} for ${length}) <> all(${ids}::bytea[]) limit 1`,
    sql`
      select 1 from webhook_subscriptions
      where substring(sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])
        or (previous_secret_expires_at > ${now}
          and substring(previous_sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])) limit 1`,
  ]);
  if (found.every((rows) => rows.length === 0)) return;
  throw new MasterKeyUnknown(
    'The database holds secrets that none of the configured master keys sealed. Give the key that did in ' +
      'SIGNALBOX_MASTER_KEY (or put its master.key back into the data directory); beside a newer one, name the newer one first.',
  );
}
