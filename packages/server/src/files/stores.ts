// The stores of this node: the one that takes new files, and those that older files may be in.
import type { S3Location } from '../config/setting-values.ts';
import type { Db } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { createDatabaseStore } from './database-store.ts';
import { createS3Store } from './s3-store.ts';
import type { FileStore } from './store.ts';

export interface FileStores {
  /** Takes new files. */
  readonly own: FileStore;
  /** The store of a file, by the name in its row. Throws if this node has no such store. */
  named(name: string): FileStore;
  /** For all files of an organization together; infinite without a limit. */
  readonly maxBytes: number;
}

export interface FileSettings {
  /** 0 is no limit. */
  readonly maxFileMegabytes: number;
  /** Where new files go; undefined: into the database. */
  readonly filesUrl?: S3Location | undefined;
}

export function createFileStores(
  { db, log, clock }: { db: Db; log: Pick<Log, 'warn'>; clock: Pick<Clock, 'sleep'> },
  { maxFileMegabytes, filesUrl }: FileSettings,
): FileStores {
  const database = createDatabaseStore(db);
  const own = filesUrl ? createS3Store(filesUrl, { log, clock }) : database;
  return {
    own,
    named(name) {
      const store = [own, database].find((one) => one.name === name);
      if (!store) throw new Error(`A file is in the store "${name}", which this node is not configured for`);
      return store;
    },
    maxBytes: maxFileMegabytes === 0 ? Number.POSITIVE_INFINITY : maxFileMegabytes * 1024 * 1024,
  };
}
