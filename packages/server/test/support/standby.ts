// A standby of a running cluster, created without extra tools: copies the files while the server is in backup mode, and receives later
// commits over a replication connection (the manual's "Making a Base Backup Using the Low Level API").
import * as fs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Client } from 'pg';
import { clusterOf } from '../../../embedded-postgres/test/support/postgres-process.ts';

/** Files of the running process, not of its data. A copy must not have them, and they may disappear during the copy. */
const LEFT_OUT = ['postmaster.pid', 'postmaster.opts', 'standby.signal', 'pg_internal.init', 'pgsql_tmp'];
const EMPTIED = ['pg_wal', 'pg_stat_tmp', 'pg_notify', 'pg_serial', 'pg_snapshots', 'pg_subtrans', 'pg_dynshmem'];

/** Writes the cluster to `dataDir`; a server started there is a standby. `primary.url` uses TCP. */
export async function copyAsStandby(primary: { dataDir: string; url: string }, dataDir: string): Promise<void> {
  const [from, to] = [clusterOf(primary.dataDir), clusterOf(dataDir)];
  const client = new Client({ connectionString: primary.url });
  await client.connect();
  await client.query(`select pg_backup_start('standby', true)`);
  await fs.mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await fs.cp(from, to, {
    recursive: true,
    filter: (path) =>
      !LEFT_OUT.some((name) => basename(path).startsWith(name)) && !EMPTIED.includes(basename(dirname(path))),
  });
  const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
  await client.end();
  const { hostname, port, username, password } = new URL(primary.url);
  await fs.writeFile(join(to, 'backup_label'), rows[0]!.labelfile);
  await fs.writeFile(join(to, 'standby.signal'), '');
  await fs.appendFile(
    join(to, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password}'\n`,
  );
  await giveTo(from, to);
}

/** Gives the copy the owner of the original, who runs the server, and access for no other user. */
async function giveTo(original: string, copy: string): Promise<void> {
  const { uid, gid } = await fs.stat(original);
  for (const entry of await fs.readdir(copy, { recursive: true, withFileTypes: true })) {
    await fs.lchown(join(entry.parentPath, entry.name), uid, gid);
  }
  await fs.chown(copy, uid, gid);
  await fs.chmod(copy, 0o700);
}
