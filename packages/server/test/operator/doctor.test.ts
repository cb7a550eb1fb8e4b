// `signalbox doctor` names what is wrong: each check meets something that is really broken.
import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CreateAgent } from '@signalbox/client';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { outdatedServer, serverVersion } from '../../src/db/server-version.ts';
import { writeStartMark } from '../../src/db/start-mark.ts';
import type { Finding } from '../../src/operator/doctor/check.ts';
import { examine } from '../../src/operator/doctor/doctor.ts';
import { APP_HEADER, POD_TOKEN, startMetadataServices } from '../support/metadata-services.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { startTransactionPooler } from '../support/transaction-pooler.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const masterKey = Buffer.alloc(32, 5);
const otherKey = Buffer.alloc(32, 6);

let service: TestService;
let directory: string;
beforeAll(async () => {
  service = await startTestService({ config: { masterKeys: [masterKey] } });
  await service.client.environments.secrets.set('production', 'TOKEN', {
    value: 'the token',
    allowedHosts: ['a.example'],
  });
  directory = await mkdtemp(join(tmpdir(), 'signalbox-doctor-'));
});
afterAll(() => rm(directory, { recursive: true }));

type Env = Record<string, string>;

/** The findings by check, with this environment. */
async function examineWith(env: Env, wish: Parameters<typeof examine>[1] = {}): Promise<Map<string, Finding>> {
  const all: Env = {
    DATABASE_URL: service.database.url,
    SIGNALBOX_MASTER_KEY: masterKey.toString('hex'),
    SIGNALBOX_DATA_DIR: join(directory, 'none'),
    ...env,
  };
  // Variables of the test run are none of the installation.
  for (const name of Object.keys(process.env)) if (name.startsWith('SIGNALBOX_')) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  // It reads the settings before it waits for anything.
  const examining = examine({}, wish);
  vi.unstubAllEnvs();
  return new Map((await examining).map((finding) => [finding.check, finding]));
}

/** The server of the tests does not wait for the disk, and may be outdated: both are problems of their own. */
function problemsOf(findings: Map<string, Finding>): string[] {
  return [...findings.values()]
    .filter(({ status, check }) => status !== 'ok' && !['database.durability', 'database.version'].includes(check))
    .map(({ check, status }) => `${check} ${status}`);
}

async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('nothing is wrong with an installation that works, and the checks write nothing', async () => {
  const counts = () =>
    ask(service.database.url, 'select (select count(*) from events_pending) + (select count(*) from events) as n');
  const before = await counts();
  const findings = await examineWith({ SIGNALBOX_PUBLIC_URL: service.url }, { apiKey: service.adminKey });
  expect(problemsOf(findings)).toEqual([]);
  expect(findings.get('secrets')!.message).toBe('the master key decrypts 1 secrets');
  expect(findings.get('nodes')!.message).toMatch(/^1 node runs/);
  expect(findings.get('public_url.streams')!.message).toBe('streams arrive at once');
  expect(await counts()).toEqual(before);
});

test('a server without the newest fixes is named, also when the service starts', async () => {
  const version = await serverVersion(service.db);
  const outdated = outdatedServer(version, { isEmbedded: false });
  const finding = (await examineWith({})).get('database.version');
  const logged = service.logLines.map((line) => JSON.parse(line)).filter(({ fix }) => fix !== undefined);
  // The PostgreSQL of the tests is outdated, unless it was set by DATABASE_URL_FOR_TESTS.
  expect(finding).toEqual({
    check: 'database.version',
    ...(outdated ? { status: 'warning', ...outdated } : { status: 'ok', message: `PostgreSQL ${version.stated}` }),
  });
  expect(logged.map(({ level, msg, fix }) => ({ level, message: msg, fix }))).toEqual(
    outdated ? [{ level: 'warn', ...outdated }] : [],
  );
  expect(outdatedServer({ stated: '18.4', major: 18 }, { isEmbedded: true })).toEqual({
    message: 'the embedded PostgreSQL 18.4 lacks the security fixes of 18.7 (2026-11-12)',
    fix: expect.stringContaining('signalbox move'),
  });
});

test('every invalid setting is reported', async () => {
  const findings = await examineWith({ SIGNALBOX_PORT: 'many' });
  expect(findings.get('configuration')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('SIGNALBOX_PORT'),
  });
});

test('a misspelt variable, and one that is no setting, are named', async () => {
  const misspelt = await examineWith({ SIGNALBOX_EGRES_ALLOW: 'x' });
  expect(misspelt.get('configuration')).toMatchObject({
    status: 'failed',
    message: 'SIGNALBOX_EGRES_ALLOW: is not a setting. Did you mean SIGNALBOX_EGRESS_ALLOW?',
  });
  const other = await examineWith({ SIGNALBOX_ALLOWED_IPS: 'x' });
  expect(other.get('configuration')).toMatchObject({
    status: 'warning',
    message: 'SIGNALBOX_ALLOWED_IPS is not a setting, so it has no effect',
  });
});

test('a database that is down, does not exist or hangs is named, and nothing more is asked of it', async () => {
  const missing = new URL(service.database.url);
  missing.pathname = '/none';
  const proxy = await startPostgresProxy(service.database.url);
  proxy.hang();
  const broken = [
    ['postgres://a:b@127.0.0.1:1/c', /does not respond \(ECONNREFUSED\)/],
    [missing.href, /does not exist\. Create it/],
    [proxy.url, /does not respond|no response within/],
  ] as const;
  const examined = await Promise.all(broken.map(([url]) => examineWith({ DATABASE_URL: url })));
  for (const [index, findings] of examined.entries()) {
    const message = expect.stringMatching(broken[index]![1]);
    expect(findings.get('database')).toMatchObject({ status: 'failed', message });
    expect([...findings.keys()].filter((check) => check.startsWith('database.'))).toEqual([]);
  }
  await proxy.close();
});

test('a database that hangs after the first check is given up', async () => {
  const proxy = await startPostgresProxy(service.database.url);
  let release: (() => void) | undefined;
  vi.stubEnv('DATABASE_URL', proxy.url);
  vi.stubEnv('SIGNALBOX_MASTER_KEY', masterKey.toString('hex'));
  const examining = examine({}, {}, ({ check }) => {
    if (check === 'database') release = proxy.hang();
  });
  vi.unstubAllEnvs();
  const ofDatabase = (await examining).filter(({ check }) => check.startsWith('database.'));
  expect(ofDatabase).toEqual([expect.objectContaining({ check: 'database.settings', status: 'failed' })]);
  release!();
  await proxy.close();
});

test('a transaction pooler without a direct URL, and two URLs of different databases, are named', async () => {
  const pooler = await startTransactionPooler(service.database.url);
  const pooled = await examineWith({ DATABASE_URL: pooler.url });
  expect(pooled.get('database.wake_ups')).toMatchObject({
    status: 'failed',
    fix: expect.stringContaining('SIGNALBOX_LISTEN_URL'),
  });
  const direct = await examineWith({ DATABASE_URL: pooler.url, SIGNALBOX_LISTEN_URL: service.database.url });
  expect(direct.get('database.wake_ups')!.status).toBe('ok');
  const other = await createTestDatabase();
  const mixed = await examineWith({ SIGNALBOX_LISTEN_URL: other.url });
  expect(mixed.get('database.wake_ups')!.message).toMatch(/different databases/);
  await other.drop();
  await pooler.close();
});

test('a read-only database, a missing right, tables of another user, too few connections and an idle slot are named', async () => {
  const database = await createTestDatabase();
  const name = new URL(database.url).pathname.slice(1);
  const role = `doctor_${process.pid}`;
  await ask(inject('databaseServerUrl'), `create role ${role} login password 'x' connection limit 10`);
  const url = new URL(database.url);
  [url.username, url.password] = [role, 'x'];
  await ask(database.url, `grant select on all tables in schema public to ${role}`);
  const slot = `doctor_${process.pid}`;
  await ask(database.url, `select pg_create_physical_replication_slot('${slot}')`);
  try {
    const findings = await examineWith({ DATABASE_URL: url.href });
    expect(findings.get('database.rights')!.message).toMatch(/can't create tables|belong to another user/);
    await ask(database.url, `grant create on schema public to ${role}`);
    expect((await examineWith({ DATABASE_URL: url.href })).get('database.rights')!.message).toMatch(
      /\d+ tables belong to another user/,
    );
    expect(findings.get('database.connections')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('the server allows 10'),
    });
    expect(findings.get('database.transactions')!.message).toContain(slot);
  } finally {
    await ask(database.url, `select pg_drop_replication_slot('${slot}')`);
  }
  await ask(database.url, `alter database ${name} set default_transaction_read_only = on`);
  expect((await examineWith({ DATABASE_URL: database.url })).get('database')!.message).toMatch(/is read-only/);
  await database.drop();
  await ask(inject('databaseServerUrl'), `drop role ${role}`);
});

test('a database that was never used, and one of a newer release, are recognized', async () => {
  const empty = await createTestDatabase({ empty: true });
  const fresh = await examineWith({ DATABASE_URL: empty.url });
  expect(problemsOf(fresh)).toEqual(['nodes skipped', 'secrets skipped', 'agents skipped', 'egress.webhooks skipped']);
  expect(fresh.get('database.schema')!.message).toMatch(/next start of the service runs migrations/);
  await empty.drop();
  const newer = await createTestDatabase();
  await ask(newer.url, `insert into signalbox_migrations values (9999, 'later', 'x', 9999, '9.9.9')`);
  const { status, message } = (await examineWith({ DATABASE_URL: newer.url })).get('database.schema')!;
  expect([status, message]).toEqual(['failed', expect.stringContaining('Start Signalbox 9.9.9 or later')]);
  await newer.drop();
});

test('an agent of an earlier release whose approval rule can’t match is named, until it is corrected or archived', async () => {
  const { agents } = service.client;
  const tool = { type: 'client' as const, name: 'pay', description: '', inputSchema: { properties: { cents: {} } } };
  const agent = { name: 'Desk', model: 'scripted/x' } as const;
  // A web search is stored apart from the tools, and is one of them for its readers.
  const { agentId } = await agents.create({
    name: 'Desk',
    model: 'openai/gpt-6.1-terra',
    tools: [{ type: 'web_search' }, tool],
  });
  const other = await agents.create({ ...agent, tools: [tool] });
  const rule = JSON.stringify({ when: { required: ['cent'] } });
  const weaken = `update agent_versions set definition = jsonb_set(definition::jsonb, '{tools,0,approval}', '${rule}')`;
  await ask(service.database.url, weaken);
  const found = async () => (await examineWith({})).get('agents')!;
  expect(await found()).toMatchObject({
    status: 'warning',
    message: `${agentId} (Desk), version 1: tools[1].approval.when.required[0]: "cent" is not in the inputSchema. Did you mean "cents"?`,
  });
  await agents.update(agentId, { tools: [tool] });
  expect((await found()).message).toContain(other.agentId);
  await agents.archive(other.agentId);
  expect(await found()).toMatchObject({ status: 'ok' });
});

test.each<[string, (secret: string) => Pick<CreateAgent, 'model' | 'tools'>]>([
  ['a header of an http tool', (secret) => ({ model: 'scripted/x', tools: [httpToolWith(secret)] })],
  ['an MCP server', (secret) => ({ model: 'scripted/x', tools: [mcpToolWith(secret)] })],
  ['the key of a model', (apiKeySecret) => ({ model: { provider: 'openai', model: 'x', apiKeySecret } })],
  [
    'the key of a fallback',
    (apiKeySecret) => ({
      model: { provider: 'scripted', model: 'x', fallbacks: [{ provider: 'openai', model: 'x', apiKeySecret }] },
    }),
  ],
])('an agent that names a secret which no environment has is named: %s', async (_, withSecret) => {
  const { agents } = service.client;
  const { agentId } = await agents.create({ name: 'Shop', ...withSecret('TOKN') });
  const found = async () => (await examineWith({})).get('agents')!;
  expect(await found()).toMatchObject({
    status: 'warning',
    message: `${agentId} (Shop), version 1: no environment has the secret TOKN. Did you mean "TOKEN"?`,
  });
  await agents.update(agentId, withSecret('TOKEN'));
  expect(await found()).toMatchObject({ status: 'ok' });
  await agents.archive(agentId);
});

test.each<[string, CreateAgent['model']]>([
  ['its model', 'openai/gpt-4-0314'],
  ['a fallback', { provider: 'scripted', model: 'x', fallbacks: [{ provider: 'openai', model: 'gpt-4-0314' }] }],
  ['its summaries', { provider: 'scripted', model: 'x', compaction: { provider: 'openai', model: 'gpt-4-0314' } }],
])('an agent whose provider ends a model is named: %s', async (_, model) => {
  const { agents } = service.client;
  const { agentId } = await agents.create({ name: 'Old', model });
  const found = async () => (await examineWith({})).get('agents')!;
  expect(await found()).toMatchObject({
    status: 'warning',
    message: `${agentId} (Old), version 1: the provider of openai/gpt-4-0314 has announced to end it on 2026-03-26`,
  });
  // A gateway has models of its own.
  await agents.update(agentId, {
    model: { provider: 'openai', model: 'gpt-4-0314', baseUrl: 'https://gw.example/v1' },
  });
  expect(await found()).toMatchObject({ status: 'ok' });
  await agents.archive(agentId);
});

test('a listed environment that does not exist, an identity that can’t be had and the key that it replaces are named', async () => {
  const { organizationId, client } = service;
  const model = { provider: 'azure', model: 'chat', baseUrl: 'https://acme.openai.azure.com/openai/v1' } as const;
  const { agentId } = await client.agents.create({ name: 'Clerk', model });
  const without = await examineWith({});
  expect(without.get('agents')!.message).toContain('no environment has the secret AZURE_OPENAI_API_KEY');
  expect(without.has('identity.environments')).toBe(false);

  const entry = `${organizationId}/production`;
  const identity = {
    AZURE_FEDERATED_TOKEN_FILE: join(directory, 'no-token'),
    AZURE_TENANT_ID: 'tenant-of-acme',
    AZURE_CLIENT_ID: 'client-of-acme',
  };
  const findings = await examineWith({ SIGNALBOX_CLOUD_IDENTITIES: entry, ...identity });
  expect(findings.get('agents')).toMatchObject({ status: 'ok' });
  expect(findings.get('identity.azure')).toMatchObject({
    status: 'failed',
    message: 'AZURE_FEDERATED_TOKEN_FILE can’t be read (ENOENT)',
  });
  expect(findings.get('identity.environments')).toMatchObject({
    status: 'failed',
    message: `${entry} may use an identity, and none can be had`,
  });
  const misspelt = await examineWith({ SIGNALBOX_CLOUD_IDENTITIES: `${organizationId}/produktion` });
  expect(misspelt.get('identity.environments')).toMatchObject({
    status: 'warning',
    message: `${organizationId}/produktion does not exist`,
  });
  expect((await examineWith({ SIGNALBOX_CLOUD_IDENTITIES: 'production' })).get('configuration')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('SIGNALBOX_CLOUD_IDENTITIES: "production" is not an environment'),
  });
  await client.agents.archive(agentId);
});

test('an identity from the metadata service of the machine is tried, and what its refusal means is said', async () => {
  const metadata = await startMetadataServices();
  const at = `http://127.0.0.1:${metadata.localPort}`;
  const identityOf = async (token: string) =>
    await examineWith({
      SIGNALBOX_CLOUD_IDENTITIES: `${service.organizationId}/production`,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${at}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: token,
      IDENTITY_ENDPOINT: `${at}/msi/token`,
      IDENTITY_HEADER: token === POD_TOKEN ? APP_HEADER : token,
    });
  try {
    const findings = await identityOf(POD_TOKEN);
    const ok = { status: 'ok', message: 'a token of the identity can be had' };
    expect([findings.get('identity.azure'), findings.get('identity.bedrock')]).toMatchObject([ok, ok]);
    expect(findings.get('identity.environments')!.message).toMatch(/can use the identity at azure, bedrock$/);
    const refused = await identityOf('another-token-of-acme');
    expect(refused.get('identity.azure')).toMatchObject({
      status: 'failed',
      message: 'The identity server of the app gave no token for its managed identity: HTTP 401: check IDENTITY_HEADER',
    });
    expect(refused.get('identity.bedrock')).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(
        /^The credentials server of the container gave no token for its role: HTTP 403: check AWS_/,
      ),
    });
    expect(JSON.stringify([...refused.values()])).not.toContain('another-token');
  } finally {
    await metadata.close();
  }
});

const httpToolWith = (secret: string) => ({
  type: 'http' as const,
  name: 'look',
  description: 'look',
  inputSchema: { type: 'object' },
  request: {
    method: 'GET' as const,
    url: 'https://a.example/',
    headers: { Authorization: `Bearer {{secrets.${secret}}}` },
  },
});
const mcpToolWith = (secret: string) => ({
  type: 'mcp' as const,
  name: 'shop',
  url: 'https://a.example/mcp',
  headers: { Authorization: `Bearer {{secrets.${secret}}}` },
});

test('a master key that is missing, another one or readable by others is named', async () => {
  const other = await examineWith({ SIGNALBOX_MASTER_KEY: otherKey.toString('hex') });
  expect(other.get('secrets')!.message).toMatch(/is not the installation's/);
  const unset = await examineWith({ SIGNALBOX_MASTER_KEY: '' });
  expect(unset.get('master_key')).toMatchObject({ status: 'warning', fix: expect.stringContaining('same value') });
  expect(unset.get('secrets')!.message).toMatch(/there is no master key/);
  const dataDir = join(directory, 'keys');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, 'master.key'), masterKey.toString('hex'), { mode: 0o600 });
  const inFile = { SIGNALBOX_MASTER_KEY: '', SIGNALBOX_DATA_DIR: dataDir };
  const file = await examineWith(inFile);
  expect(file.get('secrets')!.status).toBe('ok');
  expect(file.get('master_key')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining(join(dataDir, 'master.key')),
    fix: expect.stringContaining('on every node to the content of this file'),
  });
  chmodSync(join(dataDir, 'master.key'), 0o644);
  expect((await examineWith(inFile)).get('master_key')!.message).toMatch(/Restrict it: chmod 600/);
});

test('a data directory that must not be started, is a file, or is open to others is named without a database', async () => {
  const dataDir = join(directory, 'data');
  const env = { DATABASE_URL: '', SIGNALBOX_DATA_DIR: dataDir };
  expect(problemsOf(await examineWith(env))).toEqual(['database.server skipped']);
  mkdirSync(dataDir, { mode: 0o755 });
  expect((await examineWith(env)).get('data_directory')).toMatchObject({ status: 'warning' });
  await writeStartMark(dataDir, { because: 'moved', to: 'db:5432/x', moveId: 'x', at: '2026-01-31T00:00:00.000Z' });
  expect((await examineWith(env)).get('data_directory')).toMatchObject({
    status: 'failed',
    fix: expect.stringContaining('was moved to db:5432/x'),
  });
  rmSync(dataDir, { recursive: true });
  writeFileSync(dataDir, '');
  expect((await examineWith(env)).get('data_directory')!.status).toBe('failed');
});

test('a public URL that leads elsewhere or to nothing, and a proxy that buffers streams, are named', async () => {
  const nothing = await examineWith({ SIGNALBOX_PUBLIC_URL: 'http://127.0.0.1:1' });
  expect(nothing.get('public_url')!.message).toMatch(/can't be reached.*ECONNREFUSED/);
  const elsewhere = createServer((_request, response) => response.end('hello'));
  expect((await examineWith({ SIGNALBOX_PUBLIC_URL: await listen(elsewhere) })).get('public_url')!.message).toMatch(
    /not as Signalbox does/,
  );
  elsewhere.close();
  // It passes on nothing of a stream before its end.
  const buffering = createServer((request, response) => {
    if (request.url === '/healthz') response.end('{"status":"alive"}');
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  });
  const env = { SIGNALBOX_PUBLIC_URL: await listen(buffering) };
  expect((await examineWith(env)).get('public_url.streams')).toMatchObject({ status: 'skipped' });
  expect((await examineWith(env, { apiKey: 'sbk_x', patienceMs: 500 })).get('public_url.streams')).toMatchObject({
    status: 'failed',
    fix: expect.stringContaining('Turn off buffering'),
  });
  buffering.closeAllConnections();
  buffering.close();
});

test('a proxy that does not respond, a forbidden address of a webhook and a key of another form are named', async () => {
  await service.client.webhookSubscriptions.create({ environment: 'staging', url: `http://127.0.0.1:9/` });
  const findings = await examineWith({
    SIGNALBOX_EGRESS_PROXY: 'http://127.0.0.1:1',
    SIGNALBOX_PROVIDER_KEYS: 'anthropic',
    ANTHROPIC_API_KEY: 'not-such-a-key',
  });
  expect(findings.get('egress.proxy')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(findings.get('egress.webhooks')!.message).toContain('webhooks to 127.0.0.1:9 are not allowed');
  expect(findings.get('provider.anthropic')).toMatchObject({ status: 'warning' });
  expect(JSON.stringify([...findings.values()])).not.toContain('not-such-a-key');
});
