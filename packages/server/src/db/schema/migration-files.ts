// The files of migrations, and how each is run.
//
// `NNNN_name.sql`, numbered from 0001 without gaps. A migration never changes once it is in the repository: SHA256SUMS next to the files
// has the checksum of each, and a test compares them. `npm run schema` adds the line of a new file.
//
// A file is one of three kinds:
// - a script, which runs in one transaction;
// - one `create index concurrently`, which builds an index while others write;
// - one statement in batches (IN_BATCHES), which is repeated until it changes no row, each time in a transaction of its own.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { dataFile } from '../../lib/files/code-file.ts';

export interface Migration {
  version: number;
  name: string;
  text: string;
  /** In hexadecimal, of the text with LF line ends. */
  sha256: string;
  /** The oldest schema version whose code works on a database that has this migration. */
  worksWith: number;
  /** The index that it builds concurrently, if it is of that kind. */
  buildsIndex: string | undefined;
  inBatches: boolean;
}

const MIGRATIONS = fileURLToPath(dataFile('db/migrations/'));
const WORKS_WITH = /^-- Works with code of schema version (\d+) and later\.$/m;
const IN_BATCHES = /^-- Repeated until it changes no row\.$/m;
const BUILDS_INDEX = /^create (?:unique )?index concurrently (\w+) on [^;]+;?$/;
const CHANGES_ROWS = /^(?:with|insert|update|delete) [^;]+;?$/;

/** The migrations in a directory, in order. */
export async function readMigrations(directory: string = MIGRATIONS): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const version = index + 1;
      const [, digits, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file) ?? [];
      if (!digits || !name || Number(digits) !== version) {
        throw new Error(`Migration ${file}: the name has to be ${padded(version)}_name.sql, numbered without gaps`);
      }
      const text = (await readFile(`${directory}/${file}`, 'utf8')).replaceAll('\r\n', '\n');
      const sha256 = createHash('sha256').update(text).digest('hex');
      const worksWith = Number(WORKS_WITH.exec(text)?.[1] ?? version);
      return { version, name, text, sha256, worksWith, ...kindOf(file, text) };
    }),
  );
}

function kindOf(file: string, text: string): Pick<Migration, 'buildsIndex' | 'inBatches'> {
  const code = text.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim();
  const inBatches = IN_BATCHES.test(text);
  if (inBatches && !CHANGES_ROWS.test(code)) {
    throw new Error(`Migration ${file}: what is repeated has to be one insert, update or delete`);
  }
  const buildsIndex = BUILDS_INDEX.exec(code)?.[1];
  if (!buildsIndex && /\bconcurrently\b/.test(code)) {
    throw new Error(`Migration ${file}: create index concurrently has to be the only statement of its file`);
  }
  return { buildsIndex, inBatches };
}

/** The line of a migration in SHA256SUMS. */
export function checksumLine(migration: Migration): string {
  return `${migration.sha256}  ${fileName(migration)}\n`;
}

function fileName({ version, name }: Migration): string {
  return `${padded(version)}_${name}.sql`;
}

/**
 * The text of SHA256SUMS with the lines of migrations that it lacks. Throws if the lines that are there are not those of the first
 * migrations, in order: adding to them would hide that one is missing.
 */
export function withNewChecksums(known: string, migrations: readonly Migration[]): string {
  if (known !== '' && !known.endsWith('\n')) throw wrongChecksums('the text does not end with a line break');
  const lines = known.split('\n').slice(0, -1);
  for (const [index, line] of lines.entries()) {
    const migration = migrations[index];
    if (!migration) throw wrongChecksums(`line ${index + 1} is of no migration`);
    if (!line.endsWith(`  ${fileName(migration)}`))
      throw wrongChecksums(`line ${index + 1} is not that of ${fileName(migration)}`);
  }
  return known + migrations.slice(lines.length).map(checksumLine).join('');
}

function wrongChecksums(what: string): Error {
  return new Error(
    `SHA256SUMS: ${what}. Restore the lines of the main branch; only those of new migrations may be missing.`,
  );
}

/** A version as in the names of files. */
export const padded = (version: number): string => String(version).padStart(4, '0');
