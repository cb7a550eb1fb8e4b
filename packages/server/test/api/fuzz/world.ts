// The target of the requests: a service with two organizations. One is the caller's. Everything of the other contains a canary,
// which no response to the first may show.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CreateKey, Signalbox, Tool } from '@signalbox/client';
import sql from 'sql-template-tag';
import { parseEgressAllow } from '../../../src/egress/policy.ts';
import { newSecret } from '../../../src/keys/secret.ts';
import { formatId, newUuid, parseId, uuidOf } from '../../../src/lib/ids.ts';
import { openBrowser, tokenOf } from '../../support/browser.ts';
import { addOrganization } from '../../support/organization.ts';
import { startTestService, type TestService, watchSecret } from '../../support/service.ts';

export interface FuzzWorld {
  service: TestService;
  /** Resolves references anywhere in a JSON value; `misplaced` receives the secrets that were inserted. */
  resolve<T>(value: T, misplaced?: Set<string>): T;
  /** Remembers identifiers, cursors and secrets of a response, for later requests and checks. */
  learn(json: unknown): void;
  /** Replaces what earlier requests have used up: sessions that wait, a subscription with deliveries, and so on. */
  refresh(): Promise<void>;
  /** All secrets. */
  secrets: ReadonlySet<string>;
  /** Data of the other organization in a response, unless its request or an earlier one contained it. */
  foreignIn(text: string, request: { target: string; headers: string; body: string }): string[];
  /** For a request with a session token: data of a session that no token here reaches, unless the request contained it. */
  secludedIn(text: string, request: { target: string; headers: string; body: string }): string[];
  /** Everything that the other organization has. */
  foreignState(): Promise<unknown>;
  close(): Promise<void>;
}

const CANARY = 'canary-of-the-others';
const SECLUDED = 'canary-of-another-session';
const SECRET_VALUE = 'secret-of-the-tool-0123456789';
/** What only its own organization may change. */
const owned = [
  'api_keys',
  'agents',
  'agent_versions',
  'agent_drafts',
  'environments',
  'environment_secrets',
  'sessions',
  'schedules',
  'webhook_subscriptions',
];
const KEPT = 40;
const isId = /^([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const oldest = '00000000-0000-7000-8000-000000000000';

/** `reachable`: hosts with ports that agents may reach in addition to the world's own. */
export async function createFuzzWorld(reachable: readonly string[] = []): Promise<FuzzWorld> {
  const echo = await startEcho();
  const service = await startTestService({
    // A request that needs a second connection while it has one always gets a 503.
    maxConnections: 1,
    config: {
      egress: parseEgressAllow([echo.host, ...reachable].join(',')),
      // At the end, open requests are aborted.
      graceSeconds: 0,
      // A good part of what is sent has invalid credentials.
      authFailuresPerMinute: 0,
      rateLimits: { tokens: 1_000_000 },
    },
  });
  const own = new Map<string, string[]>();
  const foreign = new Map<string, string[]>();
  const secrets = new Set<string>([SECRET_VALUE]);
  watchSecret(SECRET_VALUE);
  // The caller's own key must stay valid.
  const callers = new Map<string, string>([['admin', service.adminKey]]);
  const spared = new Set<string>();

  function keep(pools: Map<string, string[]>, kind: string, value: string): void {
    const pool = pools.get(kind) ?? [];
    pools.set(kind, pool);
    if (!spared.has(value) && !pool.includes(value)) pool.push(value);
    if (pool.length > KEPT) pool.shift();
  }

  function learnInto(pools: Map<string, string[]>, json: unknown): void {
    JSON.stringify(json, (name, value) => {
      if (typeof value !== 'string') return value;
      const [, prefix] = isId.exec(value) ?? [];
      if (prefix) keep(pools, prefix, value);
      if (name === 'nextCursor' && value !== '') keep(pools, /^turn_/.test(value) ? 'position' : 'cursor', value);
      if (name === 'cursor') keep(pools, 'position', value);
      if (name === 'environment') keep(pools, 'environment', value);
      if (name === 'secret' || name === 'signingSecret' || name === 'link') {
        secrets.add(value);
        watchSecret(value);
        keep(pools, 'secret', value);
      }
      return value;
    });
  }

  /** A client whose stream is read. */
  function listening(client: Signalbox, pools: Map<string, string[]>) {
    return async <T>(ask: (client: Signalbox) => PromiseLike<T>): Promise<T> => {
      const answer = await ask(client);
      learnInto(pools, answer);
      return answer;
    };
  }
  const asOwn = listening(service.client, own);
  keep(own, 'url', echo.url);
  keep(foreign, 'url', echo.url);
  for (const name of ['production', 'staging']) keep(own, 'environment', name);
  secrets.add(service.adminKey);

  const strangerKey = await addOrganization(service, CANARY);
  secrets.add(strangerKey);
  watchSecret(strangerKey);
  const stranger = service.clientWith(strangerKey);
  const asForeign = listening(stranger, foreign);

  const tools: Tool[] = [
    {
      type: 'http',
      name: 'echo',
      description: 'Gives back what it gets.',
      inputSchema: { type: 'object' },
      request: { method: 'POST', url: echo.url, headers: { authorization: 'Bearer {{secrets.CANARY_TOKEN}}' } },
      approval: 'never',
    },
    { type: 'client', name: 'ask', description: 'Asks.', inputSchema: { type: 'object' } },
    { type: 'client', name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, approval: 'always' },
  ];
  const scripted = (script: object[]) => ({ provider: 'scripted' as const, model: 'x', settings: { script } });

  async function fill(ask: typeof asOwn, client: Signalbox, marked: string): Promise<void> {
    const metadata = { marked };
    const environment = 'production';
    const open = (agentId: string, more: object = {}) =>
      ask((at) => at.sessions.open({ agentId, environment, input: marked, metadata, ...more }));
    const agent = (name: string, script: object[]) =>
      ask((at) => at.agents.create({ name: `${marked} ${name}`, model: scripted(script), tools, metadata }));
    const { data: environments } = await ask((at) => at.environments.list({ limit: 100 }));
    for (const name of ['production', 'staging']) {
      if (!environments.some((one) => one.name === name)) await ask((at) => at.environments.create({ name }));
    }
    // A budget of next to nothing, which a request may have created, would stop every session.
    for (const { name } of await client.budgets.list()) await client.budgets.delete(name);
    const echoing = await agent('echo', [{ text: marked, toolCalls: [{ name: 'echo', input: { marked } }] }, {}]);
    const paying = await agent('pay', [{ toolCalls: [{ name: 'pay', input: { marked } }] }, { text: marked }]);
    const asking = await agent('ask', [{ toolCalls: [{ name: 'ask', input: { marked } }] }, { text: marked }]);
    const working = await ask((at) => at.agents.create({ name: marked, model: { provider: 'worker', queue: 'fuzz' } }));
    const sessions = await Promise.all([
      open(echoing.agentId),
      open(echoing.agentId, { environment: 'staging', closeOnIdle: true }),
      open(paying.agentId),
      open(asking.agentId),
      open(working.agentId),
    ]);
    const [echoed, , paid, asked] = sessions;
    await until(client, echoed!.sessionId, 'idle');
    for (const { sessionId } of [paid!, asked!]) await until(client, sessionId, 'waiting');
    await ask((at) => at.approvals.list({ sessionId: paid!.sessionId, limit: 5 }));
    await ask((at) =>
      at.schedules.create({ agentId: echoing.agentId, environment, input: marked, cron: '0 0 1 1 *', metadata }),
    );
    await ask((at) => at.keys.create({ name: marked, permission: 'read', metadata }));
    const subscribed = await ask((at) => at.webhookSubscriptions.list({}));
    if (!subscribed.data.some((one) => one.environment === environment)) {
      await ask((at) => at.webhookSubscriptions.create({ environment, url: echo.url }));
    }
    await ask((at) =>
      at.environments.secrets.set(environment, 'CANARY_TOKEN', { value: SECRET_VALUE, allowedHosts: [echo.host] }),
    );
    await ask((at) => at.events.list({ limit: 5, order: 'desc' }));
    await ask((at) => at.sessions.list({ limit: 3 }));
    await ask((at) => at.sessions.chunks(echoed!.sessionId, { limit: 10 }));
    await ask((at) => at.webhookSubscriptions.deliveries.list(environment, { limit: 5 }));
  }

  async function addCallers(): Promise<void> {
    const make = async (kind: string, more: object = {}) => {
      const key = await service.client.keys.create({
        name: kind,
        ...('scopes' in more ? more : { permission: 'admin', ...more }),
      } as CreateKey);
      callers.set(kind, key.secret!);
      secrets.add(key.secret!);
      spared.add(key.keyId);
      return key;
    };
    await make('read', { permission: 'read' });
    await make('write', { permission: 'write' });
    await make('staging', { environments: ['staging'] });
    await make('scoped', { scopes: ['sessions:run', 'approvals:decide', 'keys:manage'] });
    const { agentId } = await service.client.agents.create({ name: 'of a key', model: 'scripted/x' });
    await make('agent', { agents: [agentId] });
    const rotated = await make('rotated');
    secrets.add((await service.client.keys.rotate(rotated.keyId)).secret!);
    await service.client.keys.delete((await make('deleted')).keyId);
    const expired = await make('expired');
    await service.db.execute(sql`
      update api_keys set expires_at = now() where organization_id = ${uuidOf('org', service.organizationId)}
        and key_id = ${uuidOf('key', expired.keyId)}`);
    callers.set('halved', service.adminKey.slice(0, 40));
    // A secret that names the other organization and is not of any key.
    const { organization, apiKey } = await stranger.me();
    callers.set(
      'forged',
      newSecret(uuidOf('org', organization.organizationId), parseId('key', apiKey!.keyId) ?? newUuid()),
    );
  }

  /** Session tokens, and a session of another end user, which none of them reaches. */
  async function addTokens(): Promise<void> {
    const { client } = service;
    const environment = 'production';
    const script = [{ text: 'Hello', toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Bye' }];
    const define = async (name: string) =>
      (await client.agents.create({ name, model: scripted(script), tools })).agentId;
    const [agentId, other] = [await define('of tokens'), await define(SECLUDED)];
    const reached = { agentId, environment, endUser: { id: 'reached' } };
    const session = await asOwn((at) => at.sessions.open({ ...reached, input: 'Hello' }));
    await until(client, session.sessionId, 'waiting');
    await asOwn((at) => at.approvals.list({ sessionId: session.sessionId }));
    const keep = (kind: string, token: string) => {
      callers.set(kind, token);
      secrets.add(token);
      watchSecret(token);
    };
    const scopes = ['read', 'send', 'decide'] as const;
    const { token } = await client.sessions.createToken(session.sessionId, { scopes: [...scopes] });
    keep('sessiontoken', token!);
    const ofUser = { ...reached, scopes: [...scopes, 'open' as const], expiresInSeconds: 86_400 };
    keep('usertoken', (await client.sessionTokens.create(ofUser)).token!);
    callers.set('cuttoken', token!.slice(0, -5));
    const key = await client.keys.create({ name: 'revoked', permission: 'write' });
    keep('revokedtoken', (await service.clientWith(key.secret!).sessionTokens.create(ofUser)).token!);
    await client.keys.delete(key.keyId);
    await client.organization.set({ allowedOrigins: ['https://app.example.com'] });

    const { fileId } = await client.files.upload(Buffer.from(SECLUDED), { environment, filename: SECLUDED });
    const input = [
      { type: 'text' as const, text: SECLUDED },
      { type: 'file' as const, fileId },
    ];
    const secluded = { agentId: other, environment, endUser: { id: SECLUDED }, metadata: { SECLUDED } };
    const { sessionId } = await client.sessions.open({ ...secluded, input });
    await until(client, sessionId, 'waiting');
    const { data: approvals } = await client.approvals.list({ sessionId });
    const { data: messages } = await client.sessions.messages(sessionId);
    JSON.stringify([other, sessionId, fileId, approvals, messages], (_, value) => {
      const [, kind] = (typeof value === 'string' && isId.exec(value)) || [];
      if (kind) secludedIds.add(value);
      return value;
    });
    // Requests name them, as those of an attacker who has seen a log.
    learnInto(own, [...secludedIds]);
  }

  /** The owner, signed in to the console. */
  async function addPerson(): Promise<void> {
    const browser = openBrowser(service);
    const token = tokenOf(service.setupLink!);
    const password = 'a password of the fuzzing person';
    const given = { token, name: 'Owner', email: 'owner@example.com', password, organizationName: 'Own' };
    await browser.post('/links/accept', given);
    callers.set('cookie', browser.cookieHeader());
    callers.set('csrf', browser.account!.csrfToken!);
    callers.set('origin', service.url);
    for (const secret of [token, password, ...browser.cookies.values(), browser.account!.csrfToken!]) {
      secrets.add(secret);
      watchSecret(secret);
    }
    keep(own, 'org', service.organizationId);
  }

  const secludedIds = new Set<string>();
  const { apiKey: first } = await service.client.me();
  spared.add(first!.keyId);
  await addCallers();
  await addTokens();
  await addPerson();
  await asForeign((at) => at.environments.create({ name: 'theirs' }));
  await fill(asForeign, stranger, CANARY);
  const foreignIds = new Set([...foreign].flatMap(([kind, values]) => (isIdKind(kind) ? values : [])));
  keep(foreign, 'environment', 'theirs');
  const theirs = (await stranger.me()).organization;
  keep(foreign, 'org', theirs.organizationId);

  function meaning(kind: string, whose: string, index: number, misplaced: Set<string> | undefined): string {
    const caller = callers.get(kind);
    if (caller) return caller;
    const pool = (whose === 'foreign' ? foreign : own).get(kind) ?? [];
    const value = whose === 'unknown' ? undefined : pool[index % pool.length];
    if (kind === 'secret' && value) misplaced?.add(value);
    if (value !== undefined) return value;
    if (kind === 'environment') return 'nowhere';
    if (kind === 'cursor') return 'nonsense';
    if (kind === 'position') return 'turn_1:seq_2';
    return formatId(kind as 'ses', oldest);
  }

  return {
    service,
    secrets,
    learn: (json) => learnInto(own, json),
    resolve(value, misplaced) {
      const put = (text: string) =>
        text.replaceAll(/@([a-z]+):(own|foreign|unknown):(\d+)/g, (_, kind: string, whose: string, index: string) =>
          meaning(kind, whose, Number(index), misplaced),
        );
      return inEveryText(value, put) as typeof value;
    },
    refresh: () => fill(asOwn, service.client, 'own'),
    foreignIn(text, { target, headers, body }) {
      for (const id of foreignIds) if (body.includes(id)) foreignIds.delete(id);
      return [CANARY, ...foreignIds].filter((mark) => text.includes(mark) && !(target + headers).includes(mark));
    },
    secludedIn(text, { target, headers, body }) {
      for (const id of secludedIds) if (body.includes(id)) secludedIds.delete(id);
      return [SECLUDED, ...secludedIds].filter((mark) => text.includes(mark) && !(target + headers).includes(mark));
    },
    async foreignState() {
      const state: Record<string, unknown> = {};
      for (const table of owned) {
        const rows = await service.db.query<Record<string, unknown>>({
          text: `select * from ${table} where organization_id = $1 order by 1, 2, 3`,
          values: [uuidOf('org', theirs.organizationId)],
        } as never);
        // Reading the list counts as a use of their key.
        state[table] = rows.map(({ last_used_at: _, ...row }) => row);
      }
      return state;
    },
    async close() {
      await service.stop();
      await echo.close();
    },
  };
}

function isIdKind(kind: string): boolean {
  return /^[a-z]{2,4}$/.test(kind) && kind !== 'url' && kind !== 'org';
}

function inEveryText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return value.includes('@') ? change(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((inner) => inEveryText(inner, change));
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inEveryText(inner, change)]));
}

async function until(client: Signalbox, sessionId: string, status: string): Promise<void> {
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === status)) return;
  }
}
/** A server that returns everything it receives, including headers: for webhooks, and for a tool with a secret. */
async function startEcho(): Promise<{ url: string; host: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ headers: request.headers, body }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}/echo`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
