// The connections of better-auth, which has its own statements.
import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import type { ConnectionPool, PoolLog } from './pool.ts';

export type IdentityPool = ConnectionPool;

// Sign-ins are rare, and each other request makes two short reads.
const MAX_CONNECTIONS = 4;

export interface IdentityPoolOptions {
  url: string;
  log: PoolLog;
  statementTimeoutMs: number;
  /** Measures how long the server is silent. */
  clock?: Clock;
}

/** Opens its first connection for the first statement. */
export function createIdentityPool({ log, ...options }: IdentityPoolOptions): IdentityPool {
  return new Connections({ applicationName: 'signalbox sign-in', ...options }).pool(MAX_CONNECTIONS, log);
}
