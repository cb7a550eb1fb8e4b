import { expect, test } from 'vitest';
import { type Answer, clientOf, json, problem } from '../test/fake-service.ts';

/** Seven keys, three per page by default; the cursor is the number of keys before it. */
const sevenKeys: Answer = (response, { url }) => {
  const query = new URL(url, 'http://x').searchParams;
  const from = Number(query.get('cursor') ?? 0);
  const to = Math.min(7, from + Number(query.get('limit') ?? 3));
  const data = Array.from({ length: to - from }, (_, index) => ({ keyId: `key_${from + index}` }));
  json(response, 200, { data, page: { hasMore: to < 7, nextCursor: String(to) } });
};

test('an awaited list is one page, which can read the next one', async () => {
  const { client, seen } = await clientOf(sevenKeys);
  const page = await client.keys.list({ limit: 5 });
  expect(page).toMatchObject({ hasMore: true, nextCursor: '5' });
  expect(page.data.map(({ keyId }) => keyId)).toEqual(['key_0', 'key_1', 'key_2', 'key_3', 'key_4']);
  const next = await page.nextPage();
  expect(next).toMatchObject({ hasMore: false, nextCursor: '7', data: [{ keyId: 'key_5' }, { keyId: 'key_6' }] });
  expect(seen.map(({ url }) => url)).toEqual(['/api/v1/api_keys?limit=5', '/api/v1/api_keys?limit=5&cursor=5']);
});

test('iterating over a list returns every item of every page once, from the given cursor', async () => {
  const { client, seen } = await clientOf(sevenKeys);
  const walk = async (cursor?: string) => {
    const ids: string[] = [];
    for await (const { keyId } of client.keys.list({ cursor })) ids.push(keyId);
    return ids;
  };
  expect(await walk()).toEqual(['key_0', 'key_1', 'key_2', 'key_3', 'key_4', 'key_5', 'key_6']);
  expect(seen).toHaveLength(3);
  expect(await walk('5')).toEqual(['key_5', 'key_6']);
  expect(seen).toHaveLength(4);
});

test('pages are requested only when needed: none in advance, none after a break', async () => {
  const { client, seen } = await clientOf(sevenKeys);
  const list = client.keys.list();
  expect(seen).toHaveLength(0);
  for await (const { keyId } of list) if (keyId === 'key_3') break;
  expect(seen).toHaveLength(2);
  await list;
  expect(seen).toHaveLength(2);
});

test('a poller continues from the last page, even if the log was empty', async () => {
  const { client, seen } = await clientOf((response, _, number) =>
    json(response, 200, { data: [], page: { hasMore: false, nextCursor: number === 0 ? '' : 'c' } }),
  );
  const empty = await client.events.list({ order: 'asc' });
  await (await empty.nextPage()).nextPage();
  expect(seen.map(({ url }) => url)).toEqual([
    '/api/v1/events?order=asc',
    '/api/v1/events?order=asc',
    '/api/v1/events?order=asc&cursor=c',
  ]);
});

test('an error rejects the page and the iteration', async () => {
  const { client } = await clientOf((response) => problem(response, 403, 'insufficient_permission'));
  await expect(client.keys.list()).rejects.toMatchObject({ status: 403 });
  await expect(client.keys.list()[Symbol.asyncIterator]().next()).rejects.toMatchObject({ status: 403 });
});
