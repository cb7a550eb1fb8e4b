import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { Db } from '../db/db.ts';
import { createLog } from '../lib/log.ts';
import { createWake } from './wake.ts';

test('a node that stops while it connects to listen ends its connection and stops', async () => {
  const connecting = Promise.withResolvers<unknown>();
  let ended = false;
  const connection = Object.assign(new EventEmitter(), {
    query: async () => [],
    async end() {
      ended = true;
    },
  });
  const db = { connect: () => connecting.promise } as unknown as Db;
  const log = createLog({ level: 'silent' });
  const wake = createWake({ db, log, clock: createManualClock(), acrossNodes: true });
  const closed = wake.close();
  connecting.resolve(connection);
  await closed;
  expect(ended).toBe(true);
});
