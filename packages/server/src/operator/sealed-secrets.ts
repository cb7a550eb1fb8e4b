// Secrets in the database and the master keys they are sealed under: sealing them anew after the master key was replaced, and removing
// those whose key is lost. The operator runs both on the host.
import { randomBytes } from 'node:crypto';
import { signingSecretPrefix } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Config } from '../config/config.ts';
import type { Db } from '../db/db.ts';
import {
  openSecret,
  type SecretIdentity,
  type SubscriptionSecret,
  sealSecret,
} from '../deliveries/destinations/signing-secret.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { systemClock } from '../lib/clock.ts';
import { formatId } from '../lib/ids.ts';
import { allOrganizations } from '../organizations/organizations.ts';
import { masterKeyFile, readMasterKeys } from '../vault/master-key.ts';
import { CannotOpen, createVault, KEY_ID_PLACE, keyIdOf, type Vault } from '../vault/vault.ts';
import { requireStopped } from './database.ts';
import { findUnreadableDestinations, replaceDestinationSecrets, resealDestinations } from './destination-secrets.ts';
import { OperatorError, withInstallation } from './operator.ts';
import type { Progress } from './progress.ts';
import { explainStart } from './start-error.ts';

/** A secret that none of the configured master keys opens. */
export interface UnreadableSecret {
  organizationId: string;
  /** Null for a destination. */
  environment: string | null;
  kind: 'environment_secret' | 'webhook_signing_secret' | 'destination_secret';
  /** The name of the secret, or the id of the subscription or destination. */
  name: string;
}

export interface Resealed {
  resealed: number;
  unreadable: UnreadableSecret[];
}

// A transaction of this many updates takes some milliseconds.
const BATCH = 100;

/**
 * Seals everything under the first master key that is sealed under another one, in batches, while nodes serve. If it is interrupted, the
 * next command continues. Throws `OperatorError` or `StartError`.
 */
export function resealOnHost(config: Config, progress: Progress): Promise<Resealed> {
  return withVault(config, async (db, vault) => {
    await requireNewestFirst(db, vault);
    const result: Resealed = { resealed: 0, unreadable: [] };
    for (const { organizationId } of await allOrganizations(db)) {
      const seen = (count: number) => {
        result.resealed += count;
        progress({ step: 'encrypting secrets', rows: result.resealed });
      };
      result.unreadable.push(...(await resealEnvironmentSecrets(db, vault, organizationId, seen)));
      result.unreadable.push(...(await resealSigningSecrets(db, vault, organizationId, seen)));
      result.unreadable.push(...(await resealDestinations(db, vault, organizationId, seen)));
    }
    return result;
  });
}

/** Secrets that keep the service from starting. Throws `OperatorError` or `StartError`. */
export function listUnreadableOnHost(config: Config): Promise<UnreadableSecret[]> {
  return withVault(config, findUnreadable);
}

/**
 * Deletes the unreadable environment secrets. An unreadable signing secret is replaced by an unknown one, and its subscription or
 * destination is paused: its owner rotates the secret and enables it, and nothing is lost meanwhile. Unreadable headers of a destination
 * are deleted with its secret. Returns what it removed.
 */
export function deleteUnreadableOnHost(config: Config): Promise<UnreadableSecret[]> {
  return withVault(config, async (db, vault) => {
    await db.transaction((tx) => requireStopped(tx));
    const found = await findUnreadable(db, vault);
    for (const secret of found) {
      if (secret.kind === 'environment_secret') await deleteSecret(db, secret);
      else if (secret.kind === 'destination_secret') await replaceDestinationSecrets(db, vault, secret);
      else await replaceSigningSecret(db, vault, secret);
    }
    // The start requires the newest of those that are recorded, and records a new one only if it has one of them or there is none.
    await db.execute(sql`delete from master_keys where fingerprint <> all(${[...vault.fingerprints]}::bytea[])`);
    return found;
  });
}

async function withVault<T>(config: Config, use: (db: Db, vault: Vault) => Promise<T>): Promise<T> {
  try {
    const keys = config.masterKeys ?? (await readMasterKeys(config.dataDir));
    if (!keys) {
      throw new OperatorError(
        `There is no master key: set SIGNALBOX_MASTER_KEY, or put one in ${masterKeyFile(config.dataDir)} (openssl rand -base64 32).`,
      );
    }
    const vault = createVault(keys);
    return await withInstallation(config, (db) => use(db, vault));
  } catch (error) {
    throw explainStart(error, config);
  }
}

/** Other nodes could not open what is sealed under a key that they don't have. */
async function requireNewestFirst(db: Db, { fingerprints }: Vault): Promise<void> {
  const [newest] = await db.query<{ fingerprint: Buffer }>(
    sql`select fingerprint from master_keys order by position desc limit 1`,
  );
  if (!newest || newest.fingerprint.equals(fingerprints[0]!)) return;
  throw new OperatorError(
    fingerprints.some((one) => one.equals(newest.fingerprint))
      ? "The first key of SIGNALBOX_MASTER_KEY is not the installation's newest one. Put the newest key first. If the first one is " +
          'new, restart every node with it before you run this command.'
      : "The installation's newest master key is not in SIGNALBOX_MASTER_KEY. Set it as on the nodes: SIGNALBOX_MASTER_KEY=new,old.",
  );
}

async function resealEnvironmentSecrets(
  db: Db,
  vault: Vault,
  organizationId: string,
  seen: (count: number) => void,
): Promise<UnreadableSecret[]> {
  const { from, length } = KEY_ID_PLACE;
  const newest = keyIdOf(vault.fingerprints[0]!);
  const unreadable: UnreadableSecret[] = [];
  let after = { environment: '', name: '' };
  for (;;) {
    const rows = await db.query<{ environment: string; name: string; sealed: Buffer }>(sql`
      select environment, name, sealed_value as sealed from environment_secrets
      where organization_id = ${organizationId} and (environment, name) > (${after.environment}, ${after.name})
        and substring(sealed_value from ${from} for ${length}) <> ${newest}
      order by environment, name limit ${BATCH}`);
    const count = await db.transaction(async (tx) => {
      let updated = 0;
      for (const { environment, name, sealed } of rows) {
        const place = [organizationId, environment, name];
        const value = opened(() => vault.open('environment_secret', place, sealed));
        if (value === undefined) {
          unreadable.push({ organizationId, environment, kind: 'environment_secret', name });
          continue;
        }
        // Unless it was set again meanwhile.
        updated += await tx.execute(sql`
          update environment_secrets set sealed_value = ${vault.seal('environment_secret', place, value)}
          where organization_id = ${organizationId} and environment = ${environment} and name = ${name}
            and sealed_value = ${sealed}`);
      }
      return updated;
    });
    seen(count);
    const last = rows.at(-1);
    if (!last || rows.length < BATCH) return unreadable;
    after = last;
  }
}

interface SealedSubscription extends Omit<SubscriptionSecret, 'organizationId'> {
  sealed: Buffer;
  previous: Buffer | null;
  /** Whether the previous secret still signs. */
  previousCounts: boolean;
}

async function resealSigningSecrets(
  db: Db,
  vault: Vault,
  organizationId: string,
  seen: (count: number) => void,
): Promise<UnreadableSecret[]> {
  const { from, length } = KEY_ID_PLACE;
  const newest = keyIdOf(vault.fingerprints[0]!);
  const unreadable: UnreadableSecret[] = [];
  let after = '';
  for (;;) {
    const rows = await db.query<SealedSubscription>(sql`
      select environment, webhook_subscription_id as "webhookSubscriptionId", secret_version as "secretVersion",
        sealed_secret as sealed, previous_sealed_secret as previous,
        coalesce(previous_secret_expires_at > ${systemClock.now()}, false) as "previousCounts"
      from webhook_subscriptions
      where organization_id = ${organizationId} and environment > ${after}
        and (substring(sealed_secret from ${from} for ${length}) <> ${newest}
          or substring(previous_sealed_secret from ${from} for ${length}) <> ${newest})
      order by environment limit ${BATCH}`);
    const count = await db.transaction(async (tx) => {
      let updated = 0;
      for (const row of rows) {
        const identity = { organizationId, ...row };
        const sealed = resealed(vault, identity, row.sealed);
        const before = { ...identity, secretVersion: row.secretVersion - 1 };
        // One that has expired is dropped.
        const previous = row.previous && row.previousCounts ? resealed(vault, before, row.previous) : null;
        if (sealed === undefined || previous === undefined) {
          const name = formatId('whs', row.webhookSubscriptionId);
          unreadable.push({ organizationId, environment: row.environment, kind: 'webhook_signing_secret', name });
          continue;
        }
        updated += await tx.execute(sql`
          update webhook_subscriptions set sealed_secret = ${sealed}, previous_sealed_secret = ${previous}
          where organization_id = ${organizationId} and environment = ${row.environment}
            and webhook_subscription_id = ${row.webhookSubscriptionId} and sealed_secret = ${row.sealed}
            and previous_sealed_secret is not distinct from ${row.previous}`);
      }
      return updated;
    });
    seen(count);
    const last = rows.at(-1);
    if (!last || rows.length < BATCH) return unreadable;
    after = last.environment;
  }
}

function resealed(vault: Vault, identity: SecretIdentity, sealed: Buffer): Buffer | undefined {
  const secret = opened(() => openSecret(vault, identity, sealed));
  return secret === undefined ? undefined : sealSecret(vault, identity, secret);
}

/** Undefined if no key opens it. */
function opened(open: () => string): string | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof CannotOpen) return undefined;
    throw error;
  }
}

/** As the start decides: by the id of the key, without opening anything. */
async function findUnreadable(db: Db, { fingerprints }: Vault): Promise<UnreadableSecret[]> {
  const { from, length } = KEY_ID_PLACE;
  const ids = fingerprints.map(keyIdOf);
  const found: UnreadableSecret[] = [];
  for (const { organizationId } of await allOrganizations(db)) {
    const secrets = await db.query<{ environment: string; name: string }>(sql`
      select environment, name from environment_secrets
      where organization_id = ${organizationId} and substring(sealed_value from ${from} for ${length}) <> all(${ids}::bytea[])
      order by environment, name`);
    const subscriptions = await db.query<{ environment: string; id: string }>(sql`
      select environment, webhook_subscription_id as id from webhook_subscriptions
      where organization_id = ${organizationId}
        and (substring(sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[])
          or previous_secret_expires_at > ${systemClock.now()}
            and substring(previous_sealed_secret from ${from} for ${length}) <> all(${ids}::bytea[]))
      order by environment`);
    found.push(
      ...(await findUnreadableDestinations(db, organizationId, ids)),
      ...secrets.map((one) => ({ organizationId, ...one, kind: 'environment_secret' as const })),
      ...subscriptions.map(({ environment, id }) => ({
        ...{ organizationId, environment, kind: 'webhook_signing_secret' as const },
        name: formatId('whs', id),
      })),
    );
  }
  return found;
}

async function deleteSecret(db: Db, { organizationId, environment, name }: UnreadableSecret): Promise<void> {
  await db.batch([
    sql`
      delete from environment_secrets
      where organization_id = ${organizationId} and environment = ${environment} and name = ${name}`,
    recordEvent(systemSource(organizationId), systemClock.now(), {
      type: 'environment_secret.deleted',
      resource: { type: 'environment_secret', id: name },
      environment,
    }),
  ]);
}

async function replaceSigningSecret(
  db: Db,
  vault: Vault,
  { organizationId, environment: of, name }: UnreadableSecret,
): Promise<void> {
  const environment = of!;
  await db.transaction(async (tx) => {
    const [row] = await tx.query<{ webhookSubscriptionId: string; secretVersion: number; status: string }>(sql`
      select webhook_subscription_id as "webhookSubscriptionId", secret_version as "secretVersion", status
      from webhook_subscriptions where organization_id = ${organizationId} and environment = ${environment} for update`);
    if (!row) return;
    const now = systemClock.now();
    const secretVersion = row.secretVersion + 1;
    const identity = { organizationId, environment, webhookSubscriptionId: row.webhookSubscriptionId, secretVersion };
    const sealed = sealSecret(vault, identity, `${signingSecretPrefix}${randomBytes(32).toString('base64')}`);
    const source = systemSource(organizationId);
    const resource = { type: 'webhook_subscription' as const, id: name };
    await tx.query(sql`
      update webhook_subscriptions set sealed_secret = ${sealed}, secret_version = ${secretVersion},
        previous_sealed_secret = null, previous_secret_expires_at = null,
        status = case status when 'enabled' then 'paused' else status end, node_id = null, epoch = epoch + 1,
        updated_at = ${now}
      where organization_id = ${organizationId} and environment = ${environment}`);
    await tx.query(
      recordEvent(source, now, {
        ...{ type: 'webhook_subscription.secret_rotated', resource, environment },
        changes: { secretVersion: [row.secretVersion, secretVersion] },
      }),
    );
    if (row.status !== 'enabled') return;
    await tx.query(
      recordEvent(source, now, {
        ...{ type: 'webhook_subscription.updated', resource, environment },
        changes: { status: ['enabled', 'paused'] },
      }),
    );
  });
}
