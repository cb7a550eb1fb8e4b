// Connections for better-auth, which brings its own statements: they find their tables in the schema `auth`.
import type { Pool } from 'pg';
import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import type { DbLog } from './db.ts';

export type IdentityPool = Pool;

// A sign-in is rare, and what every request asks is two short reads.
const MAX_CONNECTIONS = 4;

/** Opens its first connection with the first statement. `url` must not lead through a pooler: the schema is set for a connection. */
export function createIdentityPool({
  url,
  log,
  statementTimeoutMs,
  clock,
}: {
  url: string;
  log: DbLog;
  statementTimeoutMs: number;
  /** By which the silence of the server is measured. */
  clock?: Clock;
}): IdentityPool {
  const pool = new Connections({ url, applicationName: 'signalbox sign-in', statementTimeoutMs, clock }).pool(
    MAX_CONNECTIONS,
  );
  // Sent before the statement that the connection was opened for, on the same connection.
  pool.on('connect', (client) => {
    client.query('set search_path to auth').catch((error: { code?: string }) => {
      // It would look for its tables in another schema for as long as it lives.
      log.warn({ code: error.code }, 'a database connection for signing in could not be set up');
      void client.end().catch(() => {});
    });
  });
  pool.on('error', (error) =>
    log.warn({ code: (error as { code?: string }).code }, 'lost an idle database connection'),
  );
  return pool;
}
