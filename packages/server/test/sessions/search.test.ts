// Finding sessions: by words, time, error and id, in either order; counts; and what a list shows of each.
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { sequenceEvents } from '../../src/events/sequencer.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { updateSearch } from '../../src/sessions/search/update.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let echo: string;
let failing: string;
beforeAll(async () => {
  service = await startTestService();
  const { agents } = service.client;
  echo = (await agents.create({ name: 'Echo', model: 'scripted/echo' })).agentId;
  // Its environment has no key of the provider.
  failing = (await agents.create({ name: 'Fails', model: 'openai/gpt-5' })).agentId;
});

interface Opened {
  id: string;
  createdAt: string;
}

/** A session whose first turn, if it has one, is over. */
async function open(input: string | undefined, more: object = {}): Promise<Opened> {
  const { client } = service;
  const opened = await client.sessions.open({
    agentId: echo,
    environment: 'production',
    ...more,
    ...(input && { input }),
  });
  await expect.poll(async () => (await client.sessions.get(opened.sessionId)).status).not.toBe('running');
  return { id: opened.sessionId, createdAt: opened.createdAt };
}

/** Until nothing is left to make searchable, on this node or another. */
async function searchable(): Promise<void> {
  const { db } = service;
  const organizationId = uuidOf('org', service.organizationId);
  await sequenceEvents(db, organizationId);
  await expect
    .poll(async () => {
      while ((await updateSearch(db, organizationId)) === 'more');
      const [row] = await db.query<{ isDone: boolean }>(sql`
        select p.sequence = h.sequence and p.added_from is null as "isDone" from session_search_progress p
        join event_heads h on h.organization_id = p.organization_id where p.organization_id = ${organizationId}`);
      return row?.isDone;
    })
    .toBe(true);
}

type Filters = Parameters<TestService['client']['sessions']['list']>[0];

/** The ids on all pages. */
async function find(filters: Filters): Promise<string[]> {
  const ids: string[] = [];
  for await (const { sessionId } of service.client.sessions.list({ limit: 2, ...filters })) ids.push(sessionId);
  return ids;
}

test('a session is written again only if what is found of it has changed', async () => {
  const { client, db } = service;
  const one = await open('Written once');
  const version = async () => {
    await searchable();
    const [row] = await db.query<{ version: string }>(sql`
      select x.xmin::text as version from session_search x
      where x.organization_id = ${uuidOf('org', service.organizationId)} and x.session_id = ${uuidOf('ses', one.id)}`);
    return row!.version;
  };
  const first = await version();
  await client.sessions.sendMessage(one.id, { content: 'And again' });
  await expect.poll(async () => (await client.sessions.get(one.id)).status).not.toBe('running');
  const second = await version();
  expect(second).not.toBe(first);
  await client.sessions.close(one.id);
  expect(await version()).toBe(second);
  expect(await find({ q: 'written again' })).toEqual([one.id]);
});

describe('words', () => {
  test('are found in messages, responses, the end user and metadata, in any case and order', async () => {
    const one = await open('My Order 1042 arrived damaged', {
      endUser: { id: 'cus_77', name: 'Zoë Ångström' },
      metadata: { ticket: 'QX-9', paid: true },
    });
    await open('My order 1043 arrived on time');
    const model = {
      provider: 'scripted' as const,
      model: 'demo',
      settings: { script: [{ text: 'An aubergine, sir.' }] },
    };
    const { agentId } = await service.client.agents.create({ name: 'Cook', model });
    const two = await open('What is for dinner?', { agentId });
    await searchable();
    for (const q of ['damaged 1042', 'DAMAGED', 'order_1042', 'dam', 'cus_77', 'zoe angstrom', 'Zoë', 'qx-9'])
      expect([q, await find({ q })]).toEqual([q, [one.id]]);
    expect(await find({ q: 'sir aubergine dinner' })).toEqual([two.id]);
    for (const q of ['damaged 1043', 'amaged', 'dam 1042', '—', 'order 104 arrived'])
      expect([q, await find({ q })]).toEqual([q, []]);
  });

  test.each([
    ['Japanese', '注文した商品が届きません', ['商品', '届きません', '商', '届きません 注文'], ['品商']],
    ['Chinese', '我的订单还没有到', ['订单', '没有到'], ['单订']],
    ['Thai', 'สินค้าเสียหาย', ['เสียหาย', 'สินค้า'], ['หายเสีย']],
    ['Arabic', 'وصل الطلب متأخرا', ['الطلب', 'متأخر'], ['الطلبية']],
    ['Hindi', 'मेरा ऑर्डर नहीं आया', ['ऑर्डर', 'नहीं'], ['आयात']],
    ['German', 'Die Straße über die Brücke', ['Straße', 'uber', 'BRÜCKE'], ['bruckner']],
    ['Russian', 'Заказ ещё не пришёл', ['заказ', 'пришёл', 'Ещё'], ['заказы']],
    ['Korean', '주문이 도착하지 않았어요', ['주문', '도착하지'], ['문이']],
  ])('are found in %s', async (_, input, found, missed) => {
    const { id } = await open(input);
    await searchable();
    for (const q of found) expect([q, await find({ q })]).toEqual([q, [id]]);
    for (const q of missed) expect([q, await find({ q })]).toEqual([q, []]);
  });

  test('of hostile input are only words', async () => {
    await open(`'); drop table sessions; -- & | ! ( ) <-> :* \\ "quoted" %`);
    await searchable();
    for (const q of [
      `'`,
      `''`,
      `\\`,
      `!damaged`,
      `a & | b`,
      `(`,
      `:*`,
      `<->`,
      `'a':*`,
      '%',
      '👩‍👩‍👧',
      'x'.repeat(200),
      '\u202E',
    ])
      await expect(find({ q })).resolves.toBeInstanceOf(Array);
    expect(await find({ q: `'); DROP -- "quoted"` })).toHaveLength(1);
  });

  test('are found in later messages, and in those that a fork inherits', async () => {
    const { id } = await open('The first thing');
    await searchable();
    await service.client.sessions.sendMessage(id, { content: 'Another thing: marmalade' });
    await expect.poll(async () => (await service.client.sessions.get(id)).turn).toBe(2);
    await expect.poll(async () => (await service.client.sessions.get(id)).status).toBe('idle');
    const before = await service.client.sessions.fork(id, { atTurn: 1 });
    const after = await service.client.sessions.fork(id);
    await searchable();
    expect(await find({ q: 'marmalade' })).toEqual([after.sessionId, id]);
    expect(await find({ q: 'first thing', forkedFromSessionId: id })).toEqual([after.sessionId, before.sessionId]);
  });

  test('of replaced metadata, and of deleted sessions, are no longer found', async () => {
    const { id } = await open('Something with metadata', { metadata: { batch: 'periwinkle' }, closeOnIdle: true });
    await searchable();
    expect(await find({ q: 'periwinkle' })).toEqual([id]);
    await service.client.sessions.update(id, { metadata: { batch: 'cornflower' } });
    await searchable();
    expect(await find({ q: 'periwinkle' })).toEqual([]);
    expect(await find({ q: 'cornflower metadata' })).toEqual([id]);
    await service.client.sessions.delete(id);
    expect(await find({ q: 'cornflower' })).toEqual([]);
    const left = await service.db.execute(sql`
      select 1 from session_search where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${uuidOf('ses', id)}`);
    expect(left).toBe(0);
  });

  test('and every other filter leave only sessions that match both', async () => {
    const endUser = { id: 'combined' };
    const opened: Opened[] = [];
    for (const n of [1, 2, 3]) opened.unshift(await open(`combination ${n}`, { endUser, metadata: { n } }));
    await open('combination 4', { environment: 'staging' });
    await searchable();
    const [three, two, one] = opened.map(({ id }) => id);
    const q = 'combination';
    expect(await find({ q, environment: 'production' })).toEqual([three, two, one]);
    expect(await find({ q, environment: 'production', order: 'asc' })).toEqual([one, two, three]);
    expect(await find({ q, endUserId: 'combined', status: 'idle' })).toEqual([three, two, one]);
    expect(await find({ q, metadata: { n: '2' } })).toEqual([two]);
    expect(await find({ q, agentId: echo, environment: 'staging' })).toHaveLength(1);
    expect(await find({ q, agentId: failing })).toEqual([]);
    expect(await find({ q, status: 'running' })).toEqual([]);
    expect(await find({ q: 'combination 2', since: opened[1]!.createdAt })).toEqual([two]);
    expect(await find({ q: 'combination 2', until: opened[1]!.createdAt })).toEqual([]);
    expect(await service.client.sessions.count({ q })).toEqual({ count: 4, isExact: true });
    expect(await service.client.sessions.count({ q, endUserId: 'combined' })).toEqual({ count: 3, isExact: true });
  });
});

test('the beginning of an id finds the session, whatever the other filters', async () => {
  const { id } = await open('By its id');
  expect(await find({ q: id })).toEqual([id]);
  expect(await find({ q: ` ${id.slice(0, -1)} ` })).toContain(id);
  expect(await find({ q: id, status: 'running' })).toEqual([]);
  expect(await find({ q: `${id.slice(0, -2)}!!` })).toEqual([]);
  expect(await find({ q: 'ses_zz' })).toEqual([]);
  expect((await find({ q: 'ses_' })).length).toBeGreaterThan(1);
});

test('a period includes its first moment and excludes its last one', async () => {
  const opened = [await open(undefined), await open(undefined), await open(undefined)] as const;
  const [one, two, three] = opened;
  const ids = async (filters: Filters) => (await find(filters)).filter((id) => opened.some((each) => each.id === id));
  expect(await ids({ since: two.createdAt })).toEqual([three.id, two.id]);
  expect(await ids({ until: two.createdAt })).toEqual([one.id]);
  expect(await ids({ since: one.createdAt, until: three.createdAt, order: 'asc' })).toEqual([one.id, two.id]);
  expect(await ids({ since: one.createdAt, until: three.createdAt, environment: 'production' })).toEqual([
    two.id,
    one.id,
  ]);
  expect(await find({ since: '2000-01-01T00:00:00Z', until: '2000-01-02T00:00:00Z' })).toEqual([]);
});

test('sessions whose last turn failed are found, ended or not, until it is retried', async () => {
  const idle = await open('Fail, please', { agentId: failing });
  const ended = await open('Fail, please', { agentId: failing, closeOnIdle: true });
  const hasError = true;
  expect(await find({ hasError, agentId: failing })).toEqual([ended.id, idle.id]);
  expect(await find({ hasError, status: 'failed', environment: 'production' })).toEqual([ended.id]);
  expect(await find({ hasError, agentId: failing, order: 'asc' })).toEqual([idle.id, ended.id]);
  expect(await find({ hasError, agentId: echo })).toEqual([]);
  const { data } = await service.client.sessions.list({ hasError });
  expect(data.every(({ error }) => error !== null)).toBe(true);
  expect(await service.client.sessions.count({ hasError, agentId: failing })).toEqual({ count: 2, isExact: true });
});

test('a listed session has the first words of its own first message, at once', async () => {
  const long = `Line one\n\n  line\ttwo ${'and more '.repeat(40)}`;
  const { id } = await open(long);
  const empty = await open(undefined);
  const fork = await service.client.sessions.fork(id, { input: 'My own words' });
  const previews = async () => {
    const { data } = await service.client.sessions.list({ limit: 3 });
    return new Map(data.map(({ sessionId, preview }) => [sessionId, preview]));
  };
  for (const isSearchable of [false, true]) {
    if (isSearchable) await searchable();
    const shown = await previews();
    expect(shown.get(id)).toMatch(/^Line one line two and more .*…$/);
    expect(shown.get(id)).toHaveLength(140);
    expect(shown.get(empty.id)).toBeNull();
    expect(shown.get(fork.sessionId)).toBe('My own words');
  }
});

test('the time that a session worked includes its models, and not its wait for the result of a client tool', async () => {
  const { client, db } = service;
  const script = [{ toolCalls: [{ name: 'look_up', input: {} }] }, { text: 'Found.' }];
  const { agentId } = await client.agents.create({
    name: 'Clerk',
    model: { provider: 'scripted', model: 'demo', settings: { script } },
    tools: [{ type: 'client', name: 'look_up', description: '', inputSchema: { type: 'object' } }],
  });
  const { id } = await open('Where is it?', { agentId });
  const sessionId = uuidOf('ses', id);
  // The model worked for an hour, and the tool's program had been asked five hours before.
  await db.query(sql`
    update operations set finished_at = finished_at + interval '1 hour'
    where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${sessionId} and kind = 'model'`);
  await db.query(sql`
    update operations set started_at = started_at - interval '5 hours'
    where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${sessionId} and kind = 'tool'`);
  const { waitingFor } = await client.sessions.get(id);
  await client.sessions.sendToolResult(id, { toolCallId: waitingFor!.toolCallIds[0]!, output: 1 });
  await expect.poll(async () => (await client.sessions.get(id)).status).toBe('idle');
  await searchable();
  const hours = ((await client.sessions.list({ q: id })).data[0]?.workingMs ?? 0) / 3_600_000;
  expect(hours).toBeGreaterThanOrEqual(1);
  expect(hours).toBeLessThan(2);
});

test('counting stops at the limit of a count, and says so', async () => {
  const all = await service.client.sessions.count();
  expect(all.isExact).toBe(true);
  expect(all.count).toBe((await find({ limit: 100 })).length);
});
