// Writes packages/server/schema.sql: runs the migrations on a fresh embedded PostgreSQL and dumps its catalog, with the comments of
// the migrations.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startTemporaryPostgres } from '@signalbox/embedded-postgres';
import { createDb } from '../src/db/db.ts';
import { migrate, readMigrations } from '../src/db/migrate.ts';
import { dumpSchema } from '../src/db/schema-dump.ts';
import { readSchemaNotes } from '../src/db/schema-notes.ts';

const silent = { info() {}, error() {} };
const server = await startTemporaryPostgres({ database: 'signalbox' });
const db = createDb({ url: server.url });
try {
  await migrate(db, silent);
  const notes = readSchemaNotes((await readMigrations()).map(({ text }) => text));
  await writeFile(fileURLToPath(new URL('../schema.sql', import.meta.url)), await dumpSchema(db, notes));
} finally {
  await db.close();
  await server.stop();
}
