// Keys that are limited to some environments, or to some addresses.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newSecret } from '../../src/keys/secret.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { programFile } from '../support/programs.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

// For both processes: a process whose key did not seal the database's secrets does not start.
const MASTER_KEY = randomBytes(32).toString('hex');

let service: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService({ config: { masterKeys: [Buffer.from(MASTER_KEY, 'hex')] } });
  agentId = (await service.client.agents.create({ name: 'A', model: 'scripted/x' })).agentId;
});
afterAll(() => service.stop());

const agent = { name: 'A', model: 'scripted/x' };

describe('a key limited to an environment', () => {
  let key: string;
  let keyId: string;
  const call = (method: string, path: string, body?: unknown, secret = key) =>
    send(service.url, method, path, { key: secret, ...(body !== undefined && { body }) });
  const refused = async (method: string, path: string, body?: unknown, secret = key) => {
    const problem = asProblem(await call(method, path, body, secret));
    return [problem.status, problem.code];
  };
  const open = async (environment: string) => (await service.client.sessions.open({ agentId, environment })).sessionId;
  const FORBIDDEN = [403, 'insufficient_permission'];

  beforeAll(async () => {
    const created = await service.client.keys.create({
      name: 'staging',
      permission: 'admin',
      environments: ['staging'],
    });
    key = created.secret!;
    keyId = created.keyId;
    expect(created.environments).toEqual(['staging']);
  });

  test('can name no other environment', async () => {
    expect((await call('POST', '/sessions', { agentId, environment: 'staging' })).status).toBe(201);
    expect(await refused('POST', '/sessions', { agentId, environment: 'production' })).toEqual(FORBIDDEN);
    expect((await call('PUT', '/environments/staging/secrets/X', { value: 'x', allowedHosts: ['a.b'] })).status).toBe(
      200,
    );
    expect(await refused('PUT', '/environments/production/secrets/X', { value: 'x', allowedHosts: ['a.b'] })).toEqual(
      FORBIDDEN,
    );
    expect(await refused('GET', '/environments/production/secrets')).toEqual(FORBIDDEN);
    expect(await refused('DELETE', '/environments/production')).toEqual(FORBIDDEN);
    const hook = { environment: 'production', url: 'http://127.0.0.1:1/' };
    expect(await refused('POST', '/webhook_subscriptions', hook)).toEqual(FORBIDDEN);
    expect(await refused('GET', '/webhook_subscriptions/production/deliveries')).toEqual(FORBIDDEN);
    expect(await refused('POST', '/webhook_subscriptions/production/rotate_secret')).toEqual(FORBIDDEN);
    const root = `${service.url}/webhook_subscriptions/production/rotate_secret`;
    expect((await send(service.url, 'POST', root, { key })).status).toBe(403);
    expect(await refused('GET', '/sessions?environment=production')).toEqual(FORBIDDEN);
    const detail = asProblem(await call('GET', '/usage?environment=production')).detail;
    expect(detail).toMatch(/restricted to the environment "staging".*"production"/);
  });

  test('can access nothing in another: sessions, approvals, schedules, worker turns', async () => {
    const [ours, theirs] = [await open('staging'), await open('production')];
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { metadata: {} }],
      ['DELETE', '', undefined],
      ['POST', '/messages', { content: 'x' }],
      ['GET', '/messages', undefined],
      ['POST', '/interrupt', undefined],
      ['POST', '/close', undefined],
      ['POST', '/cancel', undefined],
      ['GET', '/chunks', undefined],
      ['GET', '/stream', undefined],
    ] as const) {
      expect(await refused(method, `/sessions/${theirs}${path}`, body), `${method} ${path}`).toEqual(FORBIDDEN);
    }
    expect((await call('GET', `/sessions/${ours}`)).status).toBe(200);
    expect((await call('GET', '/sessions/ses_01k9xq3v7gf3pbt8zn5e6m2r4c')).status).toBe(404);

    const schedule = { agentId, cron: '0 9 * * *', timezone: 'UTC', input: 'x' };
    const mine = await call('POST', '/schedules', { ...schedule, environment: 'staging' });
    expect(mine.status).toBe(201);
    const path = `/schedules/${mine.json.schedule.scheduleId}`;
    expect(await refused('PATCH', path, { environment: 'production' })).toEqual(FORBIDDEN);
    const other = await service.client.schedules.create({ ...schedule, environment: 'production' });
    for (const [method, suffix] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/runs'],
    ] as const) {
      expect(await refused(method, `/schedules/${other.scheduleId}${suffix}`)).toEqual(FORBIDDEN);
    }

    const asking = await service.client.agents.create({
      name: 'Asking',
      model: {
        provider: 'scripted',
        model: 'x',
        settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }] },
      },
      tools: [{ type: 'client', name: 'pay', description: '', inputSchema: { type: 'object' }, approval: 'always' }],
    });
    const [here, there] = await Promise.all(
      ['staging', 'production'].map(async (environment) => {
        const opened = await service.client.sessions.open({ agentId: asking.agentId, environment, input: 'go' });
        for await (const envelope of service.client.sessions.stream(opened.sessionId)) {
          for (const chunk of envelope.chunks) {
            if (chunk.type === 'session.status' && chunk.status === 'waiting')
              return chunk.waitingFor!.operationIds[0]!;
          }
        }
        return expect.unreachable('it was to wait');
      }),
    );
    expect(await refused('GET', `/approvals/${there}`)).toEqual(FORBIDDEN);
    expect(await refused('POST', `/approvals/${there}/resolve`, { decision: 'approved' })).toEqual(FORBIDDEN);
    const listed = (await call('GET', '/approvals')).json.data.map((one: { operationId: string }) => one.operationId);
    expect(listed).toEqual([here]);
    expect((await call('POST', `/approvals/${here}/resolve`, { decision: 'denied' })).status).toBe(200);
  });

  test('claims no worker turn of another, and can’t change one that was claimed', async () => {
    const { agentId: worked } = await service.client.agents.create({
      name: 'Worked',
      model: { provider: 'worker', queue: 'desk' },
    });
    await service.client.sessions.open({ agentId: worked, environment: 'production', input: 'go' });
    const body = { queue: 'desk', waitSeconds: 0 };
    expect((await call('POST', '/worker_turns/claim', body)).json).toEqual({ workerTurn: null });
    expect(await refused('POST', '/worker_turns/claim', { ...body, environment: 'production' })).toEqual(FORBIDDEN);
    let turn: { workerTurnId: string } | null = null;
    while (!turn) turn = (await call('POST', '/worker_turns/claim', body, service.adminKey)).json.workerTurn;
    const path = `/worker_turns/${turn.workerTurnId}`;
    expect(await refused('POST', `${path}/heartbeat`)).toEqual(FORBIDDEN);
    expect(await refused('POST', `${path}/append`, { deltas: ['x'] })).toEqual(FORBIDDEN);
    expect(await refused('POST', `${path}/complete`, {})).toEqual(FORBIDDEN);
    expect(await refused('POST', `${path}/release`)).toEqual(FORBIDDEN);
    expect((await call('POST', `${path}/release`, undefined, service.adminKey)).status).toBe(200);
  });

  test('lists what is in its own environment by default', async () => {
    await open('production');
    const environmentsIn = async (path: string, secret = key) =>
      new Set(
        (await call('GET', path, undefined, secret)).json.data.map(
          ({ environment }: { environment: string }) => environment,
        ),
      );
    const admin = service.adminKey;
    await call('POST', '/webhook_subscriptions', { environment: 'production', url: 'http://127.0.0.1:1/' }, admin);
    await call('POST', '/webhook_subscriptions', { environment: 'staging', url: 'http://127.0.0.1:1/' });
    for (const path of ['/sessions', '/schedules', '/webhook_subscriptions', '/events?limit=1000']) {
      expect([path, await environmentsIn(path)]).toEqual([path, new Set(['staging'])]);
      expect((await environmentsIn(path, admin)).has('production')).toBe(true);
    }
    const { json: usage } = await call('GET', '/usage?groupBy=environment');
    expect(usage.data.every(({ group }: { group: string }) => group === 'staging')).toBe(true);
    const claim = await call('POST', '/worker_turns/claim', { queue: 'q', waitSeconds: 0 });
    expect(claim.json).toEqual({ workerTurn: null });
  });

  test('reads events of its own environment only', async () => {
    const { json } = await send(service.url, 'GET', '/events?limit=1000', { key: service.adminKey });
    const events: { eventId: string; environment: string | null }[] = json.data;
    const statusOf = async (environment: string | null) =>
      (await call('GET', `/events/${events.find((event) => event.environment === environment)!.eventId}`)).status;
    expect([await statusOf('staging'), await statusOf('production'), await statusOf(null)]).toEqual([200, 403, 403]);
  });

  test('reads what all environments share, and changes none of it, keys included', async () => {
    for (const path of ['/me', '/agents', `/agents/${agentId}`, '/environments', '/api_keys']) {
      expect([path, (await call('GET', path)).status]).toEqual([path, 200]);
    }
    expect(await refused('POST', '/agents', agent)).toEqual(FORBIDDEN);
    expect(await refused('PATCH', `/agents/${agentId}`, { name: 'B' })).toEqual(FORBIDDEN);
    expect(await refused('DELETE', `/agents/${agentId}`)).toEqual(FORBIDDEN);
    expect(await refused('POST', '/environments', { name: 'new' })).toEqual(FORBIDDEN);
    expect(await refused('POST', '/api_keys', { name: 'x', permission: 'admin' })).toEqual(FORBIDDEN);
    expect(await refused('PATCH', `/api_keys/${keyId}`, { environments: null })).toEqual(FORBIDDEN);
    const other = await service.client.keys.create({ name: 'other', permission: 'read' });
    expect(await refused('POST', `/api_keys/${other.keyId}/rotate`)).toEqual(FORBIDDEN);
    expect(await refused('DELETE', `/api_keys/${other.keyId}`)).toEqual(FORBIDDEN);
    const rotated = await call('POST', `/api_keys/${keyId}/rotate`);
    expect(rotated.status).toBe(200);
    key = rotated.json.apiKey.secret;
  });

  test('with several environments has to name one for a list of one', async () => {
    await service.client.environments.create({ name: 'qa' });
    const both = await service.client.keys.create({ name: 'b', permission: 'read', environments: ['staging', 'qa'] });
    expect(await refused('GET', '/sessions', undefined, both.secret)).toEqual(FORBIDDEN);
    expect(asProblem(await call('GET', '/sessions', undefined, both.secret)).detail).toContain('`environment`');
    expect((await call('GET', '/sessions?environment=qa', undefined, both.secret)).status).toBe(200);
    expect(await refused('GET', '/sessions?environment=production', undefined, both.secret)).toEqual(FORBIDDEN);
  });

  test('is not created with an unknown environment', async () => {
    const made = { name: 'x', permission: 'read', environments: ['stagign'] };
    expect(await refused('POST', '/api_keys', made, service.adminKey)).toEqual([404, 'not_found']);
    expect(await refused('POST', '/api_keys', { ...made, environments: [] }, service.adminKey)).toEqual([
      400,
      'invalid_request',
    ]);
  });

  test('gains and loses the limit from one request to the next, and the event log records it', async () => {
    const free = await service.client.keys.create({ name: 'free', permission: 'read' });
    const production = '/sessions?environment=production';
    expect((await call('GET', production, undefined, free.secret)).status).toBe(200);
    await service.client.keys.update(free.keyId, { environments: ['staging'] });
    expect(await refused('GET', production, undefined, free.secret)).toEqual(FORBIDDEN);
    await service.client.keys.update(free.keyId, { environments: null });
    expect((await call('GET', production, undefined, free.secret)).status).toBe(200);
    const { json } = await send(service.url, 'GET', '/events?limit=10', { key: service.adminKey });
    const records: { type: string; changes: unknown; actor: { id: string } }[] = json.data;
    expect(records).toContainEqual(
      expect.objectContaining({ type: 'api_key.updated', changes: { environments: [null, ['staging']] } }),
    );
    expect(records).toContainEqual(
      expect.objectContaining({ type: 'access.denied', actor: expect.objectContaining({ id: free.keyId }) }),
    );
  });
});

describe('a key limited to addresses', () => {
  const statusOf = async (secret: string | undefined, headers: Record<string, string> = {}) =>
    (await send(service.url, 'GET', '/me', { key: secret!, headers })).status;

  test('works only from there, and a refused request is not recorded as a use', async () => {
    const { client } = service;
    const here = await client.keys.create({ name: 'h', permission: 'read', allowedIps: ['10.0.0.0/8', '127.0.0.1'] });
    const elsewhere = await client.keys.create({ name: 'e', permission: 'read', allowedIps: ['10.0.0.0/8'] });
    expect(await statusOf(here.secret)).toBe(200);
    const answer = await send(service.url, 'GET', '/me', { key: elsewhere.secret! });
    expect(asProblem(answer)).toMatchObject({ status: 403, code: 'ip_not_allowed' });
    expect((await client.keys.get(elsewhere.keyId)).lastUsedAt).toBeNull();
    // A forwarded address that the client claims is ignored.
    expect(await statusOf(elsewhere.secret, { 'x-forwarded-for': '10.0.0.1' })).toBe(403);
    await client.keys.update(elsewhere.keyId, { allowedIps: null });
    expect(await statusOf(elsewhere.secret)).toBe(200);
  });

  test('is refused with 401 if its secret is wrong: the address check does not reveal which keys exist', async () => {
    const key = await service.client.keys.create({ name: 'e', permission: 'read', allowedIps: ['10.0.0.0/8'] });
    const organizationId = uuidOf('org', service.organizationId);
    expect(await statusOf(newSecret(organizationId, uuidOf('key', key.keyId)))).toBe(401);
  });

  test.each([[['10.0.0.1/8']], [['localhost']], [['10.0.0.0/33']], [[]], [['010.0.0.1']]])(
    'is not created with %j, which are not addresses',
    async (allowedIps) => {
      const body = { name: 'x', permission: 'read', allowedIps };
      const problem = asProblem(await send(service.url, 'POST', '/api_keys', { key: service.adminKey, body }));
      expect(problem).toMatchObject({ status: 400, errors: [{ path: expect.stringMatching(/^allowedIps/) }] });
    },
  );
});

test('an unknown key and a wrong secret of a known key cost the same work', async () => {
  const { apiKey } = await service.client.me();
  const organizationId = uuidOf('org', service.organizationId);
  const work = async (secret: string) => {
    const statements: unknown[] = [];
    const hear = (statement: unknown) => void statements.push(statement);
    // Only the statements of the response: recording the use of an earlier request does not count.
    subscribe('signalbox.statement', hear);
    expect((await send(service.url, 'GET', '/me', { key: secret })).status).toBe(401);
    unsubscribe('signalbox.statement', hear);
    return statements.filter((text) => /from api_keys|retired_key_secrets/.test(String(text)));
  };
  const wrong = await work(newSecret(organizationId, uuidOf('key', apiKey!.keyId)));
  const unknown = await work(newSecret(organizationId, newUuid()));
  const stranger = await work(newSecret(newUuid(), newUuid()));
  expect(wrong).toHaveLength(2);
  expect(unknown).toEqual(wrong);
  expect(stranger).toEqual(wrong);
});

test('rotating, deleting or limiting a key on one node takes effect in every process at once', async () => {
  const script = await programFile('node');
  const other = spawn(process.execPath, [script], {
    env: {
      ...process.env,
      DATABASE_URL: service.database.url,
      SIGNALBOX_MASTER_KEY: MASTER_KEY,
      SIGNALBOX_ROLES: 'api',
      SIGNALBOX_LOG_LEVEL: 'silent',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(other, 'close');
  const [printed] = await once(other.stdout, 'data');
  const url = String(printed).trim();
  const answersOf = async (secret: string | undefined) => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(url, 'GET', '/agents', { key: secret! })));
    return new Set(answers.map((answer) => (answer.status === 200 ? 'ok' : asProblem(answer).code)));
  };
  const { keys } = service.client;
  for (let round = 0; round < 3; round++) {
    const key = await keys.create({ name: 'k', permission: 'read' });
    expect(await answersOf(key.secret)).toEqual(new Set(['ok']));
    const { secret } = await keys.rotate(key.keyId);
    expect(await answersOf(key.secret)).toEqual(new Set(['token_rotated']));
    expect(await answersOf(secret)).toEqual(new Set(['ok']));
    await keys.update(key.keyId, { allowedIps: ['10.0.0.0/8'] });
    expect(await answersOf(secret)).toEqual(new Set(['ip_not_allowed']));
    await keys.update(key.keyId, { allowedIps: null });
    expect(await answersOf(secret)).toEqual(new Set(['ok']));
    await keys.delete(key.keyId);
    expect(await answersOf(secret)).toEqual(new Set(['token_revoked']));
  }
  other.stdin.end();
  await ended;
});

test('a stream ends when its key is deleted, rotated or limited to other environments', async () => {
  const clock = createManualClock();
  const node = await startTestService({ clock });
  const agentOfNode = await node.client.agents.create({ name: 'A', model: 'scripted/x' });
  const session = { agentId: agentOfNode.agentId, environment: 'production' };
  const { sessionId } = await node.client.sessions.open(session);
  const open = async (secret: string) => {
    const response = await fetch(`${node.url}/api/v1/sessions/${sessionId}/stream`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    expect(response.status).toBe(200);
    let isOver = false;
    const over = response
      .text()
      .catch(() => 'cut')
      .finally(() => {
        isOver = true;
      });
    return { over, isOver: () => isOver };
  };
  const { keys } = node.client;
  const made = await Promise.all(['a', 'b', 'c', 'd'].map((name) => keys.create({ name, permission: 'read' })));
  const streams = await Promise.all(made.map(({ secret }) => open(secret!)));
  await keys.delete(made[0]!.keyId);
  await keys.rotate(made[1]!.keyId);
  await keys.update(made[2]!.keyId, { environments: ['staging'] });
  await clock.advance(30_000);
  await Promise.all(streams.slice(0, 3).map(({ over }) => over));
  expect(streams[3]!.isOver()).toBe(false);
  await node.stop();
  await streams[3]!.over;
});
