import type { Sql } from 'sql-template-tag';
import { beforeEach, expect, test } from 'vitest';
import { createDatabaseStore } from './database-store.ts';
import type { FileStore } from './store.ts';

const MIB = 1024 * 1024;

/** The organizations of the pieces that are being written now, each until its `end`. */
let writes: { organizationId: string; end(): void }[];
let store: FileStore;

beforeEach(() => {
  writes = [];
  store = createDatabaseStore({
    async batch(statements: readonly Sql[]) {
      const { promise, resolve } = Promise.withResolvers<void>();
      writes.push({ organizationId: String(statements.at(-1)!.values[0]), end: resolve });
      await promise;
      return [];
    },
    query: async () => [],
  });
});

function write(organizationId: string, bytes: number): void {
  async function* content() {
    yield Buffer.alloc(bytes);
  }
  void store.write({ organizationId, fileId: 'f' }, content());
}

const writing = async () => {
  await new Promise(setImmediate);
  return writes.map(({ organizationId }) => organizationId);
};

test('an organization writes one whole piece at a time, and others next to it', async () => {
  for (let file = 0; file < 5; file += 1) write('one', MIB);
  expect(await writing()).toEqual(['one']);
  for (const other of ['two', 'three', 'four', 'five']) write(other, MIB);
  expect(await writing()).toEqual(['one', 'two', 'three', 'four']);
});

test('an organization writes four small files at a time, which wait for the disk rather than for the processor', async () => {
  for (let file = 0; file < 6; file += 1) write('one', 1);
  expect(await writing()).toEqual(['one', 'one', 'one', 'one']);
  write('two', MIB);
  expect(await writing()).toEqual(['one', 'one', 'one', 'one', 'two']);
});
