// `--admin-key-file`: on the first start of an installation, creates an admin key for unattended setup. The secret is written to that
// file and nowhere else.
//
// The file is written before the key is committed. A crash between the two leaves a secret without a key, which the next start replaces;
// in the other order it would leave a key whose secret is lost. Any other existing file is left unchanged.
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { systemSource } from '../events/record.ts';
import type { Clock } from '../lib/clock.ts';
import { FileError, writeOutputFile } from '../lib/files/output-file.ts';
import type { Log } from '../lib/log.ts';
import { insertKey } from './keys.ts';
import { parseSecret } from './secret.ts';

/** The file could not be written; the message says what to do. */
export class AdminKeyFileError extends Error {
  override readonly name = 'AdminKeyFileError';
}

/** Throws `AdminKeyFileError`, without creating a key. */
export async function writeAdminKeyFile(
  { db, clock, log }: { db: Db; clock: Clock; log: Pick<Log, 'info' | 'warn'> },
  organizationId: string,
  path: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    // If two nodes start at once, the second waits here and then finds the key of the first.
    await tx.query(sql`select 1 from organizations where organization_id = ${organizationId} for no key update`);
    const found = await readSecret(path);
    const keys = await tx.query<{ keyId: string }>(
      sql`select key_id as "keyId" from api_keys where organization_id = ${organizationId} order by key_id limit 1`,
    );
    if (found !== undefined) {
      const secret = parseSecret(found);
      const ours = secret?.organizationId === organizationId;
      if (ours && (await exists(tx, organizationId, secret.keyId))) return;
      if (!ours || keys.length > 0) {
        log.warn({ path }, 'the admin key file exists and contains no key of this installation; it is left unchanged');
        return;
      }
    } else if (keys.length > 0) {
      log.info({ path }, 'not the first start: no admin key was created for the admin key file');
      return;
    }
    const source = systemSource(organizationId);
    const { secret } = await insertKey(tx, source, clock.now(), { name: 'Admin key file', permission: 'admin' });
    await write(path, `${secret}\n`, { isNew: found === undefined });
    log.info({ path }, 'wrote the secret of a new admin key to the admin key file');
  });
}

async function exists(tx: Tx, organizationId: string, keyId: string): Promise<boolean> {
  return (
    (await tx.execute(sql`select 1 from api_keys where organization_id = ${organizationId} and key_id = ${keyId}`)) > 0
  );
}

async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new AdminKeyFileError(
      `The admin key file ${path} can't be read (${code}). Choose another file, or correct its owner.`,
    );
  }
}

/** Only its owner can read it. It is on disk when this resolves. */
async function write(path: string, text: string, { isNew }: { isNew: boolean }): Promise<void> {
  try {
    await writeOutputFile(path, (file) => pipeline([text], file), { isNew, mode: 0o600 });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new AdminKeyFileError(`The admin key file ${error.message}`, { cause: error });
  }
}
