// Checks at the start that a node has the installation's master keys. With a wrong key everything would seem to work until a secret is
// needed, and nodes with the right key could not read what was encrypted in the meantime.
//
// The database has a fingerprint of each key that was used to encrypt. The first start records its key before anything is encrypted.
// Later starts must have the newest recorded key. If one lists another key before it, that key becomes the newest.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import type { Log } from '../lib/log.ts';
import { KEY_ID_PLACE, keyIdOf, type Vault } from './vault.ts';

/** The message says what to do. */
export class MasterKeyUnknown extends Error {
  override readonly name = 'MasterKeyUnknown';
}

/**
 * Returns whether this is the first start of the installation. Throws `MasterKeyUnknown` if these are not its keys, or can't decrypt all
 * that is stored.
 */
export async function requireKnownKeys(
  db: Db,
  vault: Vault,
  now: Date,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<boolean> {
  const isFirstStart = await db.transaction(async (tx) => {
    // Serializes starts, so that only one of several first starts records its key. Nothing else takes this lock.
    await tx.query(sql`lock table master_keys in share row exclusive mode`);
    return requireNewestKey(tx, vault, now, log);
  });
  await requireAllOpen(db, vault, now);
  return isFirstStart;
}

/** Returns whether the installation had none. */
async function requireNewestKey(
  tx: Tx,
  { fingerprints }: Vault,
  now: Date,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<boolean> {
  const recorded = await tx.query<{ fingerprint: Buffer }>(
    sql`select fingerprint from master_keys order by position desc`,
  );
  const [newest] = recorded;
  const [first] = fingerprints;
  const isFirst = (row: { fingerprint: Buffer }) => row.fingerprint.equals(first!);
  if (newest && !fingerprints.some((fingerprint) => fingerprint.equals(newest.fingerprint))) {
    throw new MasterKeyUnknown(
      'This node does not have the master key of the installation. Set SIGNALBOX_MASTER_KEY to the same value on every node. If it ' +
        'is not set yet, use the key in master.key of the node that was started first. To replace the key, put the new one ' +
        'before the old one: SIGNALBOX_MASTER_KEY=new,old.',
    );
  }
  if (!recorded.some(isFirst)) {
    await tx.query(sql`
      insert into master_keys (fingerprint, position, recorded_at) values (${first}, ${recorded.length + 1}, ${now})`);
    if (newest) log.info({}, 'the master key was replaced: secrets are now encrypted under the new one');
  } else if (!isFirst(newest!)) {
    log.warn(
      {},
      'this node encrypts under a master key that was replaced. In SIGNALBOX_MASTER_KEY, put the newest key first',
    );
  }
  return newest === undefined;
}

async function requireAllOpen(db: Db, vault: Vault, now: Date): Promise<void> {
  const { from, length } = KEY_ID_PLACE;
  const ids = vault.fingerprints.map(keyIdOf);
  const found = await db.batch<unknown>([
    sql`
      select 1 from environment_secrets
      where substring(sealed_value from ${from} for ${length}) <> all(${ids}::bytea[]) limit 1`,
    sql`
      select 1 from webhook_subscriptions
      where substring(sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])
        or (previous_secret_expires_at > ${now}
          and substring(previous_sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])) limit 1`,
    sql`
      select 1 from destinations
      where substring(sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])
        or substring(sealed_headers from ${from} for ${length}) <> all(${ids}::bytea[])
        or (previous_secret_expires_at > ${now}
          and substring(previous_sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])) limit 1`,
  ]);
  if (found.every((rows) => rows.length === 0)) return;
  throw new MasterKeyUnknown(
    'The database contains secrets that none of the configured master keys can decrypt. Add the key that encrypted them to ' +
      'SIGNALBOX_MASTER_KEY, after the newest one (or restore its master.key in the data directory).',
  );
}
