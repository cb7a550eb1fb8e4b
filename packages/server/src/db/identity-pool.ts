// Connections for better-auth, which brings its own statements.
import type { Pool } from 'pg';
import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import type { DbLog } from './db.ts';

export type IdentityPool = Pool;

// A sign-in is rare, and what every request asks is two short reads.
const MAX_CONNECTIONS = 4;

export interface IdentityPoolOptions {
  url: string;
  log: DbLog;
  statementTimeoutMs: number;
  /** By which the silence of the server is measured. */
  clock?: Clock;
}

/** Opens its first connection with the first statement. */
export function createIdentityPool({ log, ...options }: IdentityPoolOptions): IdentityPool {
  const pool = new Connections({ applicationName: 'signalbox sign-in', ...options }).pool(MAX_CONNECTIONS);
  pool.on('error', (error) =>
    log.warn({ code: (error as { code?: string }).code }, 'lost an idle database connection'),
  );
  return pool;
}
