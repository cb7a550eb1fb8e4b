// The connections of better-auth, which has its own statements.
import type { Pool } from 'pg';
import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import type { DbLog } from './db.ts';

export type IdentityPool = Pool;

// Sign-ins are rare, and each other request makes two short reads.
const MAX_CONNECTIONS = 4;

export interface IdentityPoolOptions {
  url: string;
  log: DbLog;
  statementTimeoutMs: number;
  /** Measures how long the server is silent. */
  clock?: Clock;
}

/** Opens its first connection for the first statement. */
export function createIdentityPool({ log, ...options }: IdentityPoolOptions): IdentityPool {
  const pool = new Connections({ applicationName: 'signalbox sign-in', ...options }).pool(MAX_CONNECTIONS);
  pool.on('error', (error) =>
    log.warn({ code: (error as { code?: string }).code }, 'lost an idle database connection'),
  );
  return pool;
}
