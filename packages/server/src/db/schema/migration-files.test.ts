import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { checksumLine, type Migration, readMigrations, withNewChecksums } from './migration-files.ts';

describe('checksums of migrations', () => {
  let migrations: Migration[];
  let lines: string[];
  beforeAll(async () => {
    migrations = await readMigrations();
    lines = migrations.map(checksumLine);
  });

  test('of new migrations are added after those that are there, which stay as they are', () => {
    const changed = lines[0]!.replace(/^\w{4}/, '0000');
    const known = [changed, ...lines.slice(1, -2)].join('');
    expect(withNewChecksums(known, migrations)).toBe(known + lines.slice(-2).join(''));
    expect(withNewChecksums(lines.join(''), migrations)).toBe(lines.join(''));
    expect(withNewChecksums('', migrations)).toBe(lines.join(''));
  });

  test('are those of the repository', async () => {
    const known = await readFile(new URL('../migrations/SHA256SUMS', import.meta.url), 'utf8');
    expect(withNewChecksums(known, migrations)).toBe(known);
  });

  test.each<[string, (lines: string[]) => string[], RegExp]>([
    ['a line is missing in the middle', (all) => all.toSpliced(3, 1), /line 4 is not that of 0004_forks\.sql/],
    ['the first line is missing', (all) => all.slice(1), /line 1 is not that of 0001_signalbox\.sql/],
    ['a line is there twice', (all) => all.toSpliced(3, 0, all[3]!), /line 5 is not that of 0005_files\.sql/],
    [
      'two lines are exchanged',
      (all) => all.toSpliced(3, 2, all[4]!, all[3]!),
      /line 4 is not that of 0004_forks\.sql/,
    ],
    ['the file of a line is gone', (all) => [...all, 'ab  9999_gone.sql\n'], /line \d+ is of no migration/],
    ['a line is empty', (all) => all.toSpliced(3, 0, '\n'), /line 4 is not that of 0004_forks\.sql/],
    ['the last line is cut', (all) => [...all.slice(0, -1), all.at(-1)!.trim()], /does not end with a line break/],
  ])('are refused if %s', (_, wrong, message) => {
    expect(() => withNewChecksums(wrong(lines).join(''), migrations)).toThrow(message);
  });
});
