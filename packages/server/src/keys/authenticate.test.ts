import type { Sql } from 'sql-template-tag';
import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { DatabaseUnavailable, type Db } from '../db/db.ts';
import { createShards } from '../db/shards.ts';
import { newUuid } from '../lib/ids.ts';
import { createAuthenticator } from './authenticate.ts';
import { newSecret, parseSecret } from './secret.ts';

test('look-ups of one tick that name a shard that is down fail for its organizations alone', async () => {
  const [alive, dead] = [newUuid(), newUuid()];
  const secrets = [alive, dead, alive].map((organizationId) => {
    const secret = newSecret(organizationId, newUuid());
    return { secret, ...parseSecret(secret)! };
  });
  const query = async ({ text, values }: Sql): Promise<unknown[]> => {
    if (text.includes('get_shard_id')) {
      return (values[0] as string[]).map((organizationId) => ({
        organizationId,
        shard: organizationId === dead ? 2 : 1,
      }));
    }
    if (!text.includes('api_keys')) return [{ isThere: true }];
    if (values.includes(dead)) throw new DatabaseUnavailable({ message: 'the node is away', code: '08006' });
    return secrets
      .filter(({ keyId }) => values.includes(keyId))
      .map(({ organizationId, keyId, hash }) => ({
        organizationId,
        keyId,
        name: 'x',
        secretHash: hash,
        allowedIps: null,
        expired: false,
      }));
  };
  const batch = (statements: readonly Sql[]) => Promise.all(statements.map(query));
  const db = { query, batch, execute: async () => 1 } as unknown as Db;
  const { authenticate } = createAuthenticator({ db, shards: createShards(db), clock: createManualClock() });
  const outcomes = await Promise.allSettled(secrets.map(({ secret }) => authenticate(`Bearer ${secret}`, '127.0.0.1')));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: { name: 'DatabaseUnavailable' } });
});
