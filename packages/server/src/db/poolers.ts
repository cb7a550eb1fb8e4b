// Poolers between the service and its database. A transaction pooler may use another server connection for each transaction, which
// breaks prepared statements, settings of a connection, and LISTEN. A second URL, SIGNALBOX_LISTEN_URL, must then bypass it.
import { randomBytes } from 'node:crypto';
import type { Client } from 'pg';
import sql from 'sql-template-tag';
import { OVER } from '../lib/aborted.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Db } from './db.ts';
import { DatabaseUnsuitable } from './requirements.ts';

// A notification takes one round trip if both URLs lead to the same server.
const NOTIFIED_WITHIN_MS = 5_000;

/**
 * Whether the transactions of one connection may run on different server connections. False for a pooler that assigns a server
 * connection to a client until the client disconnects.
 */
export async function isTransactionPooled(db: Db): Promise<boolean> {
  const one = await db.connect();
  try {
    const first = await backendOf(one);
    // The server itself names the process at the beginning of a connection; a pooler makes a number up.
    if (first === (one as { processID?: number }).processID) return false;
    if (first !== (await backendOf(one))) return true;
    const other = await db.connect();
    try {
      // It takes the server's connection that the first one used, or one that the first one can't have meanwhile.
      await other.query('begin');
      if ((await backendOf(other)) === first) return true;
      return (await backendOf(one)) !== first;
    } finally {
      await other.end();
    }
  } finally {
    await one.end();
  }
}

async function backendOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]!.pid;
}

/** Throws `DatabaseUnsuitable` unless a notification of one arrives at the other, as it does within one database alone. */
export async function requireSameDatabase(db: Db, direct: Db, clock: Clock = systemClock): Promise<void> {
  const channel = `signalbox_${randomBytes(8).toString('hex')}`;
  const client = await direct.connect();
  const over = new AbortController();
  try {
    const notified = new Promise<true>((resolve) => client.once('notification', () => resolve(true)));
    await client.query(`listen ${channel}`);
    await db.query(sql`select pg_notify(${channel}, '')`);
    const late = clock.sleep(NOTIFIED_WITHIN_MS, over.signal).then(
      () => false,
      () => false,
    );
    if (await Promise.race([notified, late])) return;
  } finally {
    over.abort(OVER);
    await client.end();
  }
  throw new DatabaseUnsuitable(
    'SIGNALBOX_LISTEN_URL and DATABASE_URL are different databases: a notification sent on one did not arrive on the other.',
  );
}
