// The export of the event log: complete, bounded in memory, and a hash chain that reveals every change.
import { type Event, type EventFilters, type Signalbox, verifyEvents } from '@signalbox/client';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../client/src/canonical.ts';
import { exportEvents } from '../../src/events/export.ts';
import { recordEvent, systemActor } from '../../src/events/record.ts';
import { dropEvents } from '../../src/events/retention.ts';
import { sequenceEvents } from '../../src/events/sequencer.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let client: Signalbox;
beforeAll(async () => {
  service = await startTestService();
  client = service.client;
  for (let n = 0; n < 12; n += 1) {
    const agent = await client.agents.create({
      name: n === 3 ? '=HYPERLINK("x", "y")' : `a\n${n}`,
      model: 'scripted/x',
    });
    await client.agents.update(agent.agentId, { instructions: `${n}`, description: '+1, "quoted"' });
  }
  const [agent] = (await client.agents.list({ limit: 1 })).data;
  const session = await client.sessions.open({ agentId: agent!.agentId, environment: 'staging' });
  await client.sessions.close(session.sessionId);
});
afterAll(() => service.stop());

async function gathered(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const listed = (filter: object = {}) => gathered(client.events.list({ order: 'asc', limit: 7, ...filter }));

describe('export', () => {
  test('an export has the records of the list, oldest first', async () => {
    const events = await listed();
    expect(events.length).toBeGreaterThan(25);
    expect(await gathered(client.events.export())).toEqual(events);
    const response = await service.fetch('/api/v1/events/export');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/jsonl; charset=utf-8',
      'content-disposition': 'attachment; filename="events.jsonl"',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^req_/),
    });
    expect(await response.text()).toBe(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  });

  test('an export accepts the filters of the list', async () => {
    const events = await listed();
    const opened = events.find(({ type }) => type === 'session.created')!;
    const filters: EventFilters[] = [
      { type: 'agent.updated' },
      { actorId: opened.actor.id! },
      { resourceId: opened.resource.id },
      { sessionId: opened.sessionId! },
      { agentId: opened.agentId },
      { type: 'session.*' },
      { type: ['agent.updated', 'session.*'] },
      { type: 'agent.*', agentId: opened.agentId },
      { environment: 'staging' },
      { since: events[9]!.occurredAt, until: events[20]!.occurredAt },
      { afterSequence: events.at(-3)!.sequence },
      { type: 'agent.updated', afterSequence: 10 },
      { type: ['agent.updated', 'session.created'] },
    ];
    for (const filter of filters) {
      const found = await gathered(client.events.export(filter));
      expect(found.length, JSON.stringify(filter)).toBeGreaterThan(0);
      expect(found.length, JSON.stringify(filter)).toBeLessThan(events.length);
      expect(found, JSON.stringify(filter)).toEqual(await listed(filter));
    }
    expect(await gathered(client.events.export({ afterSequence: 10_000 }))).toEqual([]);
    const wrong = service.fetch('/api/v1/events/export?since=yesterday&format=xml');
    expect(await (await wrong).json()).toMatchObject({ status: 400, errors: [{ path: 'format' }, { path: 'since' }] });
  });

  test('an export in CSV has the same records, and no cell is a formula', async () => {
    const { secret } = await client.keys.create({ name: '=1+1', permission: 'write' });
    const headers = { 'user-agent': '@SUM(A1)' };
    await send(service.url, 'POST', '/agents', { key: secret!, headers, body: { name: 'x', model: 'scripted/x' } });
    const response = await service.fetch('/api/v1/events/export?format=csv');
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    const [names, ...rows] = tableIn(await response.text());
    const table = rows.map((cells) => Object.fromEntries(cells.map((cell, at) => [names![at], cell])));
    const events = await listed();
    expect(table.map(({ sequence, eventId, hash }) => ({ sequence: Number(sequence), eventId, hash }))).toEqual(
      events.map(({ sequence, eventId, hash }) => ({ sequence, eventId, hash })),
    );
    const [updated] = table.filter(({ type }) => type === 'agent.updated');
    expect(JSON.parse(updated!.changes!)).toMatchObject({ description: ['', '+1, "quoted"'] });
    expect(updated).toMatchObject({ actorType: 'api_key', actorName: 'Test', environment: '', ipAddress: '127.0.0.1' });
    expect(table.at(-1)).toMatchObject({ actorName: "'=1+1", userAgent: "'@SUM(A1)" });
    expect(rows.flat().filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
  });

  test('an export has the records at its start, even if others are added meanwhile', async () => {
    const { length } = await listed();
    const seen: Event[] = [];
    for await (const event of client.events.export()) {
      if (seen.push(event) === 3) await client.keys.create({ name: 'meanwhile', permission: 'read' });
    }
    expect(seen).toHaveLength(length);
    expect(await listed()).toHaveLength(length + 1);
  });
});

/** RFC 4180. */
function tableIn(text: string): string[][] {
  expect(text.endsWith('\r\n')).toBe(true);
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}

describe('verification', () => {
  const tampers: [what: string, tamper: (organization: Sql) => Sql, sequence: number, problem: string][] = [
    [
      'the type',
      (here) =>
        sql`update events set body = jsonb_set(body, '{type}', '"agent.archived"') where ${here} and sequence = 11`,
      11,
      'changed',
    ],
    [
      'the actor',
      (here) => sql`update events set body = jsonb_set(body, '{actor,name}', '"Eve"') where ${here} and sequence = 11`,
      11,
      'changed',
    ],
    [
      'the time',
      (here) => sql`update events set occurred_at = occurred_at - interval '1 ms' where ${here} and sequence = 11`,
      11,
      'changed',
    ],
    [
      'the id',
      (here) => sql`update events set event_id = gen_random_uuid() where ${here} and sequence = 11`,
      11,
      'changed',
    ],
    [
      'the hash',
      (here) => sql`update events set hash = decode(repeat('ab', 32), 'hex') where ${here} and sequence = 11`,
      11,
      'changed',
    ],
    ['a deleted record', (here) => sql`delete from events where ${here} and sequence = 11`, 12, 'records_missing'],
    ['all previous records deleted', (here) => sql`delete from events where ${here} and sequence < 11`, 11, 'changed'],
  ];
  test.each(tampers)(
    'verification detects tampering in the database and returns the record: %s',
    async (_, tamper, sequence, problem) => {
      expect(await client.events.verify()).toMatchObject({ ok: true });
      const here = sql`organization_id = (select organization_id from event_heads)`;
      await service.db.query(sql`create table kept as select * from events`);
      await service.db.query(tamper(here));
      const found = await client.events.verify();
      expect(found).toMatchObject({ ok: false, sequence, problem });
      await service.db.query(sql`delete from events`);
      await service.db.query(sql`insert into events select * from kept`);
      await service.db.query(sql`drop table kept`);
    },
  );

  test('verification serializes every value like the service did for the hash', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => canonicalJson(value) === canonicalize(value)),
    );
  });

  test('a verification can start at the checkpoint of the previous one', async () => {
    const first = await client.events.verify();
    const checkpoint = first.ok ? first.last! : undefined;
    await client.keys.create({ name: 'later', permission: 'read' });
    expect(await client.events.verify({ checkpoint })).toMatchObject({
      ok: true,
      last: { sequence: checkpoint!.sequence + 1 },
    });
    const later = client.events.export({ afterSequence: checkpoint!.sequence });
    expect(await verifyEvents(later, { checkpoint })).toMatchObject({ ok: true, count: 1 });
  });
});

describe('retention', () => {
  let node: TestPlatform;
  beforeAll(async () => {
    node = await createTestPlatform();
  });
  afterAll(() => node.close());

  const day = (n: number) => new Date(Date.UTC(2026, 0, n));
  async function write(days: readonly number[], name = ''): Promise<void> {
    const source = {
      organizationId: node.organizationId,
      actor: systemActor,
      requestId: null,
      ipAddress: null,
      userAgent: null,
    };
    for (const n of days) {
      const draft = { type: 'agent.created' as const, resource: { type: 'agent', id: `${n}${name}` } };
      await node.platform.db.query(recordEvent(source, day(n), draft));
    }
    await sequenceEvents(node.platform.db, node.organizationId);
  }
  async function exported(): Promise<Event[]> {
    const { read } = await exportEvents(node.ctx, {});
    let text = '';
    for await (const piece of read(new AbortController().signal)) text += piece;
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event);
  }
  const drop = (n: number) => dropEvents(node.platform.db, node.organizationId, day(n));

  test('retention drops only from the start, and the rest is a chain anchored at the last dropped record', async () => {
    await write([1, 2, 3, 9, 2, 4, 10]);
    const before = await exported();
    expect(await drop(5)).toBe(false);
    const after = await exported();
    // The second record of day 2 and that of day 4 come after one that stays.
    expect(after.map(({ resource }) => resource.id)).toEqual(['9', '2', '4', '10']);
    expect(after).toEqual(before.slice(3));
    expect(after[0]!.previousHash).toBe(before[2]!.hash);
    expect(await verifyEvents(after)).toMatchObject({ ok: true, count: 4 });
    expect(await verifyEvents([...before.slice(0, 3), ...after])).toMatchObject({ ok: true, count: 7 });
    const checkpoint = { sequence: 3, hash: before[2]!.hash };
    expect(await verifyEvents(after, { checkpoint })).toMatchObject({ ok: true });
  });

  test('a log continues its chain after the retention of all its records', async () => {
    const before = await exported();
    expect(await drop(30)).toBe(false);
    expect(await exported()).toEqual([]);
    await write([31]);
    const [next] = await exported();
    expect(next).toMatchObject({ sequence: before.at(-1)!.sequence + 1, previousHash: before.at(-1)!.hash });
    expect(await verifyEvents([...before, next])).toMatchObject({ ok: true });
  });

  test('retention that overtakes an export aborts the export instead of leaving a gap', async () => {
    await write(Array.from({ length: 1200 }, () => 40));
    const { read } = await exportEvents(node.ctx, {});
    const pieces = read(new AbortController().signal);
    expect((await pieces.next()).done).toBe(false);
    expect(await drop(41)).toBe(true);
    await expect(pieces.next()).rejects.toThrow(/retention/);
  });

  test('an export buffers at most 64 KiB and one record, however long the records are', async () => {
    const before = (await exported()).length;
    await write([...Array(20).fill(50)], 'x'.repeat(30 * 1024));
    const { read } = await exportEvents(node.ctx, {});
    const pieces: string[] = [];
    for await (const piece of read(new AbortController().signal)) pieces.push(piece);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(160 * 1024);
    expect(pieces.join('').split('\n')).toHaveLength(before + 20 + 1);
  });
});
