// A connection that copies whole tables: for backups, restores and moves. It has no time limits, and nothing closes it while its other
// end is slow: a backup may go to a slow disk or through a pipe.
import type { Readable, Writable } from 'node:stream';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { Connection, pinnedSettings } from './connection.ts';
import { isServerError } from './pipeline.ts';
import { urlsOf } from './url.ts';

export interface BulkConnection {
  /** A fixed statement, or one made of names from the catalog. */
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** What `copy … to stdout` sends. */
  copyOut(text: string): Readable;
  /** What `copy … from stdin` takes. Finished once the server has stored all of it. */
  copyIn(text: string): Writable;
  /** Closes it at once: an open transaction is rolled back. */
  close(): void;
}

const SETTINGS = {
  ...pinnedSettings,
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  // The slow end acknowledges nothing while it does not read.
  tcp_user_timeout: '0',
};

/** To the first host that is writable. Rejects with the error of the last one. */
export async function openBulkConnection(url: string): Promise<BulkConnection> {
  let failed: unknown;
  for (const host of urlsOf(url)) {
    const connection = new Connection({ url: host, applicationName: 'signalbox copy', settings: SETTINGS });
    try {
      await connection.connect();
      // Only PostgreSQL 17 and later has it.
      await connection.query(`select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'`);
      return asBulk(connection);
    } catch (error) {
      failed = error;
    }
  }
  throw failed;
}

function asBulk(connection: Connection): BulkConnection {
  return {
    async query<Row>(text: string, values: unknown[] = []) {
      const { rows } = await connection.query({ text, values });
      return rows as Row[];
    },
    copyOut: (text) => connection.query(copyTo(text)),
    copyIn: (text) => connection.query(copyFrom(text)),
    close: () => connection.destroy('The connection was closed'),
  };
}

/** The disk of the database is full. */
export const isDiskFull = (error: unknown): boolean => isServerError(error) && error.code === '53100';
/** Another transaction has a lock. */
export const isLocked = (error: unknown): boolean => isServerError(error) && error.code === '55P03';
