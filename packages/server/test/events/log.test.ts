// The event log of an organization, and every event type.
import { createHash } from 'node:crypto';
import { type Event, type EventTypePattern, verifyEvents } from '@signalbox/client';
import { type EventType, eventTypes, type Route, routes } from '@signalbox/contract';
import canonicalize from 'canonicalize';
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Db, Queryable } from '../../src/db/db.ts';
import { listEvents } from '../../src/events/events.ts';
import { recordEvent, systemActor } from '../../src/events/record.ts';
import { findPendingRecords, sequenceEvents, sequenceInBackground } from '../../src/events/sequencer.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { firstUuidOf } from '../../src/lib/ids.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

async function all(filter: object = {}): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of service.client.events.list({ order: 'asc', limit: 1000, ...filter })) events.push(event);
  return events;
}

function expectChain(events: Pick<Event, 'sequence' | 'hash' | 'previousHash'>[]): void {
  let previous = '0'.repeat(64);
  for (const [index, { hash, previousHash, ...record }] of events.entries()) {
    expect(record.sequence).toBe(index + 1);
    expect(previousHash).toBe(previous);
    expect(hash).toBe(
      createHash('sha256').update(Buffer.from(previous, 'hex')).update(canonicalize(record)!).digest('hex'),
    );
    previous = hash;
  }
}

test('every change is recorded with who did it, in a chain without gaps, and at once', async () => {
  const { client } = service;
  const key = await client.keys.create({ name: 'k', permission: 'read' });
  await client.keys.update(key.keyId, { name: 'k2' });
  await client.keys.rotate(key.keyId, { gracePeriodSeconds: 60 });
  await client.keys.deleteOldSecret(key.keyId);
  await client.keys.delete(key.keyId);
  const agent = await client.agents.create({ name: 'A', model: 'scripted/x' });
  await client.agents.update(agent.agentId, { instructions: 'more' });
  await client.environments.create({ name: 'test' });
  await client.environments.secrets.set('test', 'TOKEN', { value: 'very-secret-value', allowedHosts: ['example.com'] });
  await client.environments.secrets.delete('test', 'TOKEN');
  const created = await client.webhookSubscriptions.create({ environment: 'test', url: 'https://example.com/hook' });
  await client.webhookSubscriptions.rotateSecret('test');
  await client.webhookSubscriptions.delete('test');
  await client.environments.delete('test');
  const session = await client.sessions.open({ agentId: agent.agentId, environment: 'production' });
  await client.sessions.close(session.sessionId);
  await client.sessions.delete(session.sessionId);
  await client.agents.archive(agent.agentId);

  const events = await all();
  expectChain(events);
  const mine = events.filter(({ actor }) => actor.type === 'api_key');
  expect(mine.map(({ type }) => type)).toEqual([
    'api_key.created',
    'api_key.updated',
    'api_key.rotated',
    'api_key.old_secret_deleted',
    'api_key.deleted',
    'agent.created',
    'agent.updated',
    'environment.created',
    'environment_secret.set',
    'environment_secret.deleted',
    'webhook_subscription.created',
    'webhook_subscription.secret_rotated',
    'webhook_subscription.deleted',
    'environment.deleted',
    'session.created',
    'session.completed',
    'session.deleted',
    'agent.archived',
  ]);
  expect(mine[1]).toMatchObject({ changes: { name: ['k', 'k2'] }, resource: { type: 'api_key', id: key.keyId } });
  for (const { context } of mine)
    expect(context).toMatchObject({ requestId: expect.stringMatching(/^req_/), ipAddress: '127.0.0.1' });
  const ofAgent = new Set(mine.filter((event) => event.agentId === agent.agentId).map(({ type }) => type));
  expect(ofAgent).toEqual(new Set(mine.map(({ type }) => type).filter((type) => /^(agent|session)\./.test(type))));
  expect(mine.filter(({ type }) => type.startsWith('api_key.')).some((event) => 'agentId' in event)).toBe(false);
  const text = JSON.stringify(events);
  for (const secret of [key.secret!, created.signingSecret!, 'very-secret-value']) expect(text).not.toContain(secret);
});

test('the log has the caller who stops a running session, and the session’s new status', async () => {
  const { client } = service;
  const script = [{ toolCalls: [{ name: 'ask', input: {} }] }];
  const tools = [{ type: 'client' as const, name: 'ask', description: 'Asks', inputSchema: { type: 'object' } }];
  const model = { provider: 'scripted' as const, model: 'x', settings: { script } };
  const { agentId } = await client.agents.create({ name: 'B', model, tools });
  const open = async () => {
    const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
    await untilStatus(sessionId, 'waiting');
    return sessionId;
  };
  const [interrupted, closed, steered] = [await open(), await open(), await open()];
  await client.sessions.interrupt(interrupted);
  await untilStatus(interrupted, 'idle');
  await client.sessions.close(closed);
  await client.sessions.close(closed);
  await client.sessions.cancel(closed);
  await client.sessions.sendMessage(steered, { content: 'rather this', onBusy: 'steer' });
  const typesOf = async (sessionId: string) => (await all({ sessionId })).map(({ type, actor }) => [type, actor.type]);
  const begun = [
    ['session.created', 'api_key'],
    ['session.waiting', 'agent'],
  ];
  expect(await typesOf(interrupted)).toEqual([...begun, ['session.interrupted', 'api_key'], ['session.idle', 'agent']]);
  expect(await typesOf(closed)).toEqual([...begun, ['session.closing', 'api_key'], ['session.cancelled', 'api_key']]);
  expect((await typesOf(steered)).slice(0, 3)).toEqual([...begun, ['session.interrupted', 'api_key']]);
});

async function untilStatus(sessionId: string, wanted: string): Promise<void> {
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === wanted)) return;
  }
}

/** The events of each call that changes something; the reason if there are none. */
const recorded: Record<string, EventType[] | string> = {
  createKey: ['api_key.created'],
  updateKey: ['api_key.updated'],
  rotateKey: ['api_key.rotated'],
  deleteOldSecret: ['api_key.old_secret_deleted'],
  deleteKey: ['api_key.deleted'],
  createAgent: ['agent.created'],
  updateAgent: ['agent.updated'],
  archiveAgent: ['agent.archived'],
  createEnvironment: ['environment.created'],
  updateEnvironment: ['environment.updated'],
  deleteEnvironment: ['environment.deleted'],
  setSecret: ['environment_secret.set'],
  deleteSecret: ['environment_secret.deleted'],
  openSession: ['session.created'],
  forkSession: ['session.forked'],
  updateSession: ['session.updated'],
  deleteSession: ['session.deleted'],
  interruptSession: ['session.interrupted', 'session.idle'],
  retrySession: ['session.retried'],
  compactSession: ['session.compaction_requested'],
  closeSession: ['session.closing', 'session.completed'],
  cancelSession: ['session.cancelled'],
  cancelSessions: ['session.cancelled'],
  closeSessions: ['session.completed', 'session.closing'],
  sendMessage: 'is in the transcript; a steering message is session.interrupted',
  sendToolResult: 'is in the transcript',
  createSessionShare: ['session.shared'],
  deleteSessionShare: ['session.share_revoked'],
  resolveApprovals: ['approval.decided', 'approval.resolved'],
  resolveApproval: ['approval.decided', 'approval.resolved'],
  claimWorkerTurn: 'part of a turn',
  heartbeatWorkerTurn: 'part of a turn',
  appendToWorkerTurn: 'part of a turn',
  completeWorkerTurn: 'part of a turn; the end of the turn is recorded',
  releaseWorkerTurn: 'part of a turn',
  eraseEndUser: ['end_user.erasure_started', 'end_user.erased'],
  uploadFile: ['file.created'],
  deleteFile: ['file.deleted'],
  createSchedule: ['schedule.created'],
  updateSchedule: ['schedule.updated'],
  deleteSchedule: ['schedule.deleted'],
  runSchedule: ['schedule.opened'],
  setBudget: ['budget.created', 'budget.updated'],
  deleteBudget: ['budget.deleted'],
  updateMember: ['user.role_changed', 'user.can_decide_changed'],
  removeMember: ['user.removed'],
  resetPassword: ['user.password_reset_requested'],
  createInvitation: ['user.invited'],
  deleteInvitation: ['user.invitation_withdrawn'],
  updateOrganization: ['organization.updated'],
  setOrganization: ['organization.updated'],
  createSessionToken: ['session_token.created'],
  createEndUserToken: ['session_token.created'],
  createWebhookSubscription: ['webhook_subscription.created'],
  updateWebhookSubscription: ['webhook_subscription.updated', 'webhook_subscription.enabled'],
  deleteWebhookSubscription: ['webhook_subscription.deleted'],
  rotateWebhookSecret: ['webhook_subscription.secret_rotated'],
  testWebhookSubscription: 'changes nothing here',
  createDestination: ['destination.created'],
  updateDestination: ['destination.updated', 'destination.enabled'],
  deleteDestination: ['destination.deleted'],
  rotateDestinationSecret: ['destination.secret_rotated'],
  testDestination: 'changes nothing here',
  recoverDestination: ['destination.recovered'],
  testTool: ['agent.tool_tested'],
  listMcpTools: 'changes nothing here',
  recoverDeliveries: ['webhook_delivery.recovered'],
  resendDelivery: ['webhook_delivery.resent'],
};
/** Events that no call causes. */
const unasked: EventType[] = [
  'session.waiting',
  'session.failed',
  'turn.failed',
  'tool_call.outcome_unknown',
  'tool_server.unavailable',
  'tool_server.available',
  'approval.requested',
  'schedule.missed',
  'schedule.failed',
  'budget.threshold_reached',
  'model.ending',
  'webhook_subscription.secret_confirmed',
  'webhook_subscription.degraded',
  'webhook_subscription.disabled',
  'webhook_delivery.exhausted',
  'destination.secret_confirmed',
  'destination.degraded',
  'destination.disabled',
  // Caused by users outside the API (people.test.ts).
  'organization.created',
  'user.joined',
  'user.signed_in',
  'user.sign_in_failed',
  'user.signed_out',
  'user.password_reset',
  'user.password_changed',
  'user.passkey_added',
  'user.passkey_removed',
  'user.provider_connected',
  'user.provider_disconnected',
  'access.denied',
];

test('every call that changes something has its events listed, and every event type has a source', () => {
  const changing = Object.entries<Route>(routes).filter(([, { method }]) => method !== 'GET');
  expect(changing.map(([name]) => name).filter((name) => !(name in recorded))).toEqual([]);
  const kinds = [...unasked, ...Object.values(recorded).flatMap((what) => (typeof what === 'string' ? [] : what))];
  expect([...new Set(kinds)].toSorted()).toEqual([...eventTypes].toSorted());
});

test('a record is found by its id and by its resource', async () => {
  const agent = await service.client.agents.create({ name: 'Found', model: 'scripted/x' });
  const [event] = await all({ resourceId: agent.agentId });
  expect(event).toMatchObject({ type: 'agent.created' });
  expect(await service.client.events.get(event!.eventId)).toEqual(event);
  expect(await all({ type: 'agent.created', resourceId: agent.agentId, since: event!.occurredAt })).toEqual([event]);
  expect(await all({ resourceId: agent.agentId, until: event!.occurredAt })).toEqual([]);
  await service.client.agents.update(agent.agentId, { name: 'Found again' });
  const types = async (type: EventTypePattern | EventTypePattern[]) =>
    (await all({ type, resourceId: agent.agentId })).map((record) => record.type);
  expect(await types(['agent.created', 'agent.updated'])).toEqual(['agent.created', 'agent.updated']);
  expect(await types(['agent.archived', 'agent.updated'])).toEqual(['agent.updated']);
  const refused = { code: 'invalid_request', errors: [{ path: 'type' }] };
  for (const pattern of ['agent.*', '*', ['agent.*', 'agent.updated'], ['approval.*', 'agent.*']] as const)
    expect(await types([pattern].flat())).toEqual(['agent.created', 'agent.updated']);
  expect(await types('approval.*')).toEqual([]);
  const { agentId } = agent;
  const about = await all({ agentId });
  expect(about.map((record) => [record.type, record.agentId])).toEqual([
    ['agent.created', agentId],
    ['agent.updated', agentId],
  ]);
  const wrong = ['agent.created,', 'agent.created,agent.gone', '', 'x', 'gone.*', 'agent*', 'agent.cre*', '*.created'];
  for (const type of [...wrong, 'agent.created.*', '.*', '**', 'agent.*,gone.*'])
    await expect(types(type as EventType)).rejects.toMatchObject(refused);
  const newest = (await service.client.events.list({ limit: 1 })).data[0]!;
  expect(newest.sequence).toBeGreaterThanOrEqual(event!.sequence);
});

test('the refusal of a key is recorded once a minute for each error code', async () => {
  const reader = (await service.client.keys.create({ name: 'denied', permission: 'read' })).secret!;
  for (let n = 0; n < 3; n += 1) await send(service.url, 'GET', '/api_keys', { key: reader });
  const denied = (await all({ type: 'access.denied' })).filter(({ actor }) => actor.name === 'denied');
  expect(denied).toMatchObject([{ outcome: 'denied', changes: { code: [null, 'insufficient_permission'] } }]);
});

describe('readers against writers that stall and roll back (P6)', () => {
  let node: TestPlatform;
  let here: PoolContext;
  let there: PoolContext;
  beforeEach(async () => {
    node = await createTestPlatform();
    here = node.ctx;
    there = { ...node.ctx, ...(await node.anotherNode()) };
  });
  afterEach(() => node.close());

  const write = (tx: Queryable, id: string) => {
    const draft = { type: 'agent.created' as const, resource: { type: 'agent', id } };
    return tx.query(recordEvent({ ...here, actor: systemActor }, new Date(), draft));
  };

  test('all readers on two nodes see the same chain, without gaps, late inserts or rolled-back records', async () => {
    let writing = 8;
    const kept: string[] = [];
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      const { db } = writer % 2 === 0 ? here : there;
      for (let n = 0; n < 30; n += 1) {
        const id = `${writer}.${n}`;
        const isKept = (writer + n) % 5 !== 0;
        if (isKept) kept.push(id);
        await db
          .transaction(async (tx) => {
            await write(tx, id);
            for (let turn = 0; turn < (writer * n) % 9; turn += 1)
              await new Promise<void>((resolve) => setImmediate(resolve));
            if (!isKept) throw new Error('rolled back');
          })
          .catch(() => {});
      }
      writing -= 1;
    });
    const read = async (ctx: PoolContext, query: { limit: number; wait?: number }) => {
      const seen: Event[] = [];
      let cursor: string | undefined;
      for (let last = false; ; last = writing === 0) {
        const { data, page } = await listEvents(ctx, { order: 'asc', ...query, ...(cursor && { cursor }) });
        seen.push(...data);
        cursor = page.nextCursor;
        if (last && data.length === 0) return seen;
      }
    };
    const readers = [read(here, { limit: 7 }), read(there, { limit: 1000 }), read(there, { limit: 3, wait: 1 })];
    const [first, ...others] = await Promise.all([...readers, ...writers]);
    expectChain(first!);
    expect(await verifyEvents(first!)).toMatchObject({ ok: true, count: kept.length });
    expect(first!.map(({ resource }) => resource.id).toSorted()).toEqual(kept.toSorted());
    for (const seen of others.slice(0, 2)) expect(seen).toEqual(first);
  });

  test('a record that is written first and committed last comes last, and changes nothing that was read', async () => {
    const stalled = Promise.withResolvers<void>();
    const written = Promise.withResolvers<void>();
    const late = here.db.transaction(async (tx) => {
      await write(tx, 'late');
      written.resolve();
      await stalled.promise;
    });
    await written.promise;
    for (let n = 0; n < 20; n += 1) await write(there.db, `${n}`);
    const before = await listEvents(there, { order: 'asc' });
    expect(before.data.map(({ resource }) => resource.id)).toEqual(Array.from({ length: 20 }, (_, n) => `${n}`));
    stalled.resolve();
    await late;
    const after = await listEvents(here, { order: 'asc', cursor: before.page.nextCursor });
    expect(after.data).toMatchObject([{ sequence: 21, resource: { id: 'late' }, previousHash: before.data[19]!.hash }]);
    const { data } = await listEvents(there, { order: 'asc' });
    expect(data).toEqual([...before.data, ...after.data]);
  });

  test('readers leave a record that was committed more than two minutes late to the background pass', async () => {
    const now = Date.now();
    const arrive = (id: string, createdMs: number) =>
      here.db.transaction(async (tx) => {
        await write(tx, id);
        await tx.query(sql`
          update events_pending set event_id = ${firstUuidOf(new Date(createdMs))}
          where organization_id = ${here.organizationId} and body->'resource'->>'id' = ${id}`);
      });
    const read = async () => (await listEvents(there, { order: 'asc' })).data.map(({ resource }) => resource.id);
    // Ahead of the others by an hour, as the clock of its node may be.
    await arrive('ahead', now + 3600_000);
    expect(await read()).toEqual(['ahead']);
    await arrive('late', now - 90_000);
    expect(await read()).toEqual(['ahead', 'late']);
    await arrive('too late', now - 180_000);
    expect(await read()).toEqual(['ahead', 'late']);
    for (const pending of await findPendingRecords(node.platform)) await sequenceInBackground(there.db, pending);
    expect(await read()).toEqual(['ahead', 'late', 'too late']);
    await arrive('next', now);
    expect(await read()).toEqual(['ahead', 'late', 'too late', 'next']);
  });

  test('a record written between two statements of a reader appears once, on the next page', async () => {
    await write(here.db, 'first');
    let between = 0;
    const db: Db = {
      ...here.db,
      async query<Row>(statement: Sql) {
        const rows = await here.db.query<Row>(statement);
        if (/^\s*select sequence, anchor_sequence/.test(statement.text) && between++ === 0) {
          await write(there.db, 'between');
          await sequenceEvents(there.db, there.organizationId);
        }
        return rows;
      },
    };
    const first = await listEvents({ ...here, db }, { order: 'asc' });
    const next = await listEvents(here, { order: 'asc', cursor: first.page.nextCursor });
    expect(between).toBe(1);
    expect([...first.data, ...next.data].map(({ resource }) => resource.id)).toEqual(['first', 'between']);
  });
});
