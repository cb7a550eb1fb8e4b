// Connections for better-auth, which brings its own statements: they find their tables in the schema `auth`.
import { Pool } from 'pg';
import type { DbLog } from './db.ts';

export type IdentityPool = Pool;

// A sign-in is rare, and what every request asks is two short reads.
const MAX_CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 10_000;

/** Opens its first connection with the first statement. `url` must not lead through a pooler: the schema is set for a connection. */
export function createIdentityPool({
  url,
  log,
  statementTimeoutMs,
}: {
  url: string;
  log: DbLog;
  statementTimeoutMs: number;
}): IdentityPool {
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    fallback_application_name: 'signalbox sign-in',
    ...(statementTimeoutMs ? { statement_timeout: statementTimeoutMs } : {}),
  });
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
