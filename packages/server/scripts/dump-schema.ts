// Writes packages/server/schema.sql: runs the migrations on a fresh embedded PostgreSQL and dumps its catalog, with the comments of
// the migrations. Adds the checksums of new migrations to SHA256SUMS; those that are there stay, and a test compares them. It fails, and
// writes nothing, if one of them is missing.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startTemporaryPostgres } from '@signalbox/embedded-postgres';
import { createDb } from '../src/db/db.ts';
import { migrate } from '../src/db/schema/migrate.ts';
import { readMigrations, withNewChecksums } from '../src/db/schema/migration-files.ts';
import { dumpSchema } from '../src/db/schema/schema-dump.ts';
import { readSchemaNotes } from '../src/db/schema/schema-notes.ts';

const sums = fileURLToPath(new URL('../src/db/migrations/SHA256SUMS', import.meta.url));
const migrations = await readMigrations();
const checksums = withNewChecksums(await readFile(sums, 'utf8'), migrations);

const silent = { info() {}, warn() {}, error() {} };
const server = await startTemporaryPostgres({ database: 'signalbox' });
const db = createDb({ url: server.url });
try {
  await migrate(db, silent);
  const notes = readSchemaNotes(migrations.map(({ text }) => text));
  await writeFile(fileURLToPath(new URL('../schema.sql', import.meta.url)), await dumpSchema(db, notes));
  await writeFile(sums, checksums);
} finally {
  await db.close();
  await server.stop();
}
