// Expired rows are deleted, however many there are: a few per statement, found by an index.
import sql, { raw, type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { dropAccessDenials } from '../../src/events/denied.ts';
import { dropExpiredResponses } from '../../src/http/idempotency/idempotency.ts';
import { dropRetiredSecrets } from '../../src/keys/retired.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { dropExpiredLinks } from '../../src/people/invitations.ts';
import { dropExpiredSignIns } from '../../src/people/sign-ins.ts';
import { costOf } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const OLD = 2_500;
const YOUNG = 20_000;
const BATCH = 1_000;

let platform: TestPlatform;
let db: Db;
const user = newUuid();
const key = newUuid();

beforeAll(async () => {
  platform = await createTestPlatform();
  db = platform.platform.db;
  const organization = platform.organizationId;
  await db.execute(sql`
    insert into users (id, name, email, email_verified, created_at, updated_at)
    values (${user}, 'A', 'a@example.com', true, now(), now())`);
  // The key of the retired secrets is not deleted itself.
  await db.execute(sql`
    insert into api_keys (organization_id, key_id, name, permission, metadata, secret_hash, secret_preview, created_at, updated_at)
    values (${organization}, ${key}, 'A', 'read', '{}', '', '', now(), now())`);
  const at = "case when n <= $2 then now() - interval '100 days' else now() + interval '1 hour' end";
  const fill: [into: string, select: string][] = [
    [
      'idempotency_records (organization_id, caller_id, idempotency_key, fingerprint, expires_at)',
      `$1::uuid, $1::uuid, n::text, '', ${at}`,
    ],
    [
      'retired_key_secrets (organization_id, key_id, secret_hash, retired_at)',
      `$1::uuid, '${key}'::uuid, int4send(n), ${at}`,
    ],
    [
      `api_keys (organization_id, key_id, name, permission, metadata, secret_hash, secret_preview, created_at, updated_at,
        deleted_at)`,
      `$1::uuid, gen_random_uuid(), 'A', 'read', '{}', '', '', now(), now(), ${at}`,
    ],
    [
      'access_denials (organization_id, caller_id, code, recorded_at)',
      `$1::uuid, gen_random_uuid(), 'insufficient_permission', ${at}`,
    ],
    [
      `invitations (organization_id, invitation_id, is_setup, role, invited_by, token_hash, expires_at, created_at)`,
      `$1::uuid, gen_random_uuid(), false, 'viewer', '{}', '', ${at}, now()`,
    ],
    [
      'password_resets (organization_id, password_reset_id, user_id, token_hash, expires_at, created_at)',
      `$1::uuid, gen_random_uuid(), '${user}'::uuid, '', ${at}, now()`,
    ],
    [
      'sign_ins (id, user_id, token, expires_at, created_at, updated_at)',
      `gen_random_uuid(), '${user}'::uuid, $1::text || n, ${at}, now(), now()`,
    ],
    [
      'verifications (id, identifier, value, expires_at, created_at, updated_at)',
      `gen_random_uuid(), $1::text || n, '', ${at}, now(), now()`,
    ],
  ];
  const client = await db.connect();
  for (const [into, select] of fill) {
    await client.query(`insert into ${into} select ${select} from generate_series(1, $3::int) n`, [
      organization,
      OLD,
      OLD + YOUNG,
    ]);
  }
  await client.query('analyze');
  await client.end();
});
afterAll(() => platform.close());

test.each([
  ['stored responses of idempotency keys', dropExpiredResponses, ['idempotency_records']],
  ['retired secrets and deleted keys', dropRetiredSecrets, ['retired_key_secrets', 'api_keys']],
  ['records of denied requests', dropAccessDenials, ['access_denials']],
  ['links', dropExpiredLinks, ['invitations', 'password_resets']],
  ['sign-ins and challenges', dropExpiredSignIns, ['sign_ins', 'verifications']],
] as const)(
  '%s are deleted at most a thousand at a time, by an index, and only if they have expired',
  async (_, drop, tables) => {
    const counts: number[] = [];
    async function requireCheap(statement: Sql): Promise<void> {
      if (counts.at(-1) === BATCH) return;
      const cost = await costOf(db, statement, { asIfLarge: true });
      expect(cost.wholeTables).toEqual([]);
      expect(cost.rows).toBeLessThanOrEqual(3 * BATCH);
    }
    const watched: Db = {
      ...db,
      async execute(statement) {
        await requireCheap(statement);
        counts.push(await db.execute(statement));
        return counts.at(-1)!;
      },
      async query<Row>(statement: Sql) {
        await requireCheap(statement);
        const rows = await db.query<Row>(statement);
        counts.push((rows[0] as { found: number }).found);
        return rows;
      },
    };
    await drop({ db: watched, shards: createShards(watched) }, new Date(), new AbortController().signal);
    const most = counts.filter((count) => count > 0);
    expect(most).toEqual(tables.flatMap(() => [BATCH, BATCH, OLD - 2 * BATCH]));
    for (const table of tables) {
      const [left] = await db.query<{ count: number }>(sql`select count(*)::int as count from ${raw(table)}`);
      expect(left!.count).toBe(table === 'api_keys' ? YOUNG + 1 : YOUNG);
    }
  },
);

test('a stop ends the deletion between two batches', async () => {
  const stopping = new AbortController();
  let statements = 0;
  const execute = async () => {
    statements += 1;
    if (statements === 2) stopping.abort();
    return BATCH;
  };
  const full: Db = { ...db, execute };
  await dropExpiredResponses({ shards: createShards(full) }, new Date(), stopping.signal);
  expect(statements).toBe(2);
});
