// Writes packages/server/schema.sql: the migrations run on a fresh embedded PostgreSQL, and its catalog as text, with their comments.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDb } from '../src/db/db.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate, readMigrations } from '../src/db/migrate.ts';
import { dumpSchema } from '../src/db/schema-dump.ts';
import { readSchemaNotes } from '../src/db/schema-notes.ts';

const silent = { info() {}, error() {} };
const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-schema-'));
const server = await startEmbeddedPostgres({ dataDir, log: silent, settings: { fsync: 'off' } });
const db = createDb({ url: server.url });
try {
  await migrate(db, silent);
  const notes = readSchemaNotes((await readMigrations()).map(({ text }) => text));
  await writeFile(fileURLToPath(new URL('../schema.sql', import.meta.url)), await dumpSchema(db, notes));
} finally {
  await db.close();
  await server.stop();
  await rm(dataDir, { recursive: true });
}
