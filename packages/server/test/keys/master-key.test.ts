// A service does not start with a master key that is not its installation's.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import { StartError } from '../../src/main.ts';
import { MasterKeyUnknown, requireKnownKeys } from '../../src/vault/known-keys.ts';
import { loadMasterKeys } from '../../src/vault/master-key.ts';
import { createVault } from '../../src/vault/vault.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { send } from '../support/raw.ts';
import { createReceiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

const oldKey = randomBytes(32);
const newKey = randomBytes(32);
let first: TestService;
beforeAll(async () => {
  first = await startTestService({ config: { masterKeys: [oldKey] } });
});
afterAll(() => first.stop());

const startWith = (...masterKeys: Buffer[]) => startTestService({ database: first.database, config: { masterKeys } });
const put = (service: TestService, name: string) =>
  send(service.url, 'PUT', `/environments/production/secrets/${name}`, {
    key: service.adminKey,
    body: { value: 'a secret value', allowedHosts: ['example.com'] },
  });

test('with another key the service does not start, even if nothing is sealed yet, and says what to set', async () => {
  const refusal = await startWith(newKey).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StartError);
  expect((refusal as Error).message).toMatch(/does not have the master key.*SIGNALBOX_MASTER_KEY/);
});

test('if nodes start a new installation at once with different keys, those with one of them start and the others are refused', async () => {
  const database = await createTestDatabase();
  const db = createDb({ url: database.url });
  const vaults = Array.from({ length: 10 }, () => createVault([randomBytes(32)]));
  const log = { info() {}, warn() {} };
  const starts = await Promise.allSettled(
    [...vaults, ...vaults].map((vault) => requireKnownKeys(db, vault, new Date(), log)),
  );
  const started = starts.flatMap(({ status }, index) => (status === 'fulfilled' ? [index % vaults.length] : []));
  expect(started).toHaveLength(2);
  expect(new Set(started).size, 'different keys').toBe(1);
  for (const start of starts) if (start.status === 'rejected') expect(start.reason).toBeInstanceOf(MasterKeyUnknown);
  await db.close();
  await database.drop();
});

test('nodes without SIGNALBOX_MASTER_KEY, each with its own key file, are not one installation, and the first start says so', async () => {
  const database = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-keys-'));
  const startIn = (name: string) =>
    startTestService({ database, config: { masterKeys: undefined, dataDir: join(directory, name) } });
  const warned = ({ logLines }: TestService) => logLines.filter((line) => line.includes('every other node'));
  const one = await startIn('one');
  const [warning] = warned(one);
  expect(JSON.parse(warning!)).toMatchObject({
    level: 'warn',
    msg: expect.stringContaining(join(directory, 'one', 'master.key')),
    fix: expect.stringContaining('Set SIGNALBOX_MASTER_KEY on every node'),
  });
  expect(warning).not.toContain((await loadMasterKeys(join(directory, 'one')))[0]!.toString('base64'));
  await expect(startIn('two')).rejects.toThrow(/master.key of the node that was started first/);
  const again = await startIn('one');
  expect(warned(again)).toEqual([]);
  await again.stop();
  await one.stop();
  await database.drop();
  await rm(directory, { recursive: true });
});

test('a key is replaced by naming the new one first; afterwards the old one alone is not enough', async () => {
  const database = await createTestDatabase();
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const start = (...masterKeys: Buffer[]) => startTestService({ database, config: { masterKeys } });
  await (await start(before)).stop();
  // First added to every node, then used from the second step on.
  await (await start(before, after)).stop();
  await (await start(before)).stop();
  await (await start(after, before)).stop();
  await expect(start(before)).rejects.toThrow(/SIGNALBOX_MASTER_KEY=new,old/);
  const late = await start(before, after);
  expect(late.logLines.filter((line) => line.includes('put the newest key first'))).toHaveLength(1);
  await late.stop();
  const last = await start(after);
  expect(last.logLines.filter((line) => line.includes('put the newest key first'))).toEqual([]);
  await last.stop();
  await database.drop();
});

test('once a secret exists, the service needs the key that sealed it, which may follow a newer one', async () => {
  expect((await put(first, 'TOKEN')).status).toBe(200);
  const both = await startWith(newKey, oldKey);
  await expect(startWith(newKey)).rejects.toThrow(
    /none of the configured master keys can decrypt.*SIGNALBOX_MASTER_KEY/,
  );
  // Sealed again: nothing is sealed with the old key any longer.
  expect((await put(both, 'TOKEN')).status).toBe(200);
  await both.stop();
  await (await startWith(newKey)).stop();

  const receiver = await createReceiver();
  const subscribed = await send(first.url, 'POST', '/webhook_subscriptions', {
    key: first.adminKey,
    body: { environment: 'production', url: receiver.url },
  });
  expect(subscribed.status).toBe(201);
  // Sealed by the node that still runs with the old key.
  await expect(startWith(newKey)).rejects.toThrow(StartError);
  await expect(startWith(oldKey)).rejects.toThrow(StartError);
  await (await startWith(newKey, oldKey)).stop();
  await receiver.close();
});
