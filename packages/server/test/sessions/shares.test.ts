// Share links: who may create them, what they show to a stranger, and how they end.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CreatedSessionShare } from '@signalbox/client';
import { Signalbox } from '@signalbox/client';
import sql from 'sql-template-tag';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { newSecret, parseSecret } from '../../src/keys/secret.ts';
import { type Browser, openBrowser } from '../support/browser.ts';
import { png } from '../support/files.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { join, setUp } from '../support/people.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const DAY_MS = 24 * 3600_000;
const SECRET = 'metadata-that-stays-here';
const lookUp = {
  type: 'client' as const,
  name: 'look_up',
  description: 'Looks up.',
  inputSchema: { type: 'object' as const },
};

let service: TestService;
let owner: Browser;
beforeAll(async () => {
  service = await startTestService();
  owner = await setUp(service);
});

/** A session with a file, a tool call and its result. */
async function openSession(environment = 'staging'): Promise<{ sessionId: string; fileId: string }> {
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: `${SECRET} agent`,
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: {
        script: [
          { text: 'I **look**.', toolCalls: [{ name: 'look_up', input: { order: 'TOOL-INPUT' } }] },
          { text: 'Found.' },
        ],
      },
    },
    tools: [lookUp],
  });
  const { fileId } = await client.files.upload(new Blob(['shared bytes']), { environment, filename: 'note.txt' });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment,
    input: [
      { type: 'text', text: 'Where is my order?' },
      { type: 'file', fileId },
    ],
    metadata: { note: SECRET },
    endUser: { id: `${SECRET}-user`, name: SECRET },
  });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  const { waitingFor } = await client.sessions.get(sessionId);
  const toolCallId = (waitingFor as { toolCallIds: string[] }).toolCallIds[0]!;
  await client.sessions.sendToolResult(sessionId, { toolCallId, output: { state: 'TOOL-OUTPUT' } });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  return { sessionId, fileId };
}

function tokenIn({ link }: CreatedSessionShare): string {
  const token = new URL(link!).hash.slice(1);
  watchSecret(token);
  return token;
}

async function share(sessionId: string, params = {}): Promise<{ shareId: string; token: string }> {
  const created = await service.client.sessions.share(sessionId, params);
  return { shareId: created.share.shareId, token: tokenIn(created) };
}

const stranger = () => openBrowser(service);
const read = (token: string, more = {}) => stranger().post('/shares/read', { token, ...more });

test('a stranger with the link reads the conversation and its files, and nothing else of the organization', async () => {
  const { sessionId, fileId } = await openSession();
  const { token } = await share(sessionId, { title: 'An order' });
  const { status, json, text, headers } = await read(token);
  expect(status, text).toBe(200);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(Object.keys(json).sort()).toEqual(
    ['createdAt', 'expiresAt', 'includesTools', 'messages', 'page', 'status', 'title'].sort(),
  );
  expect(json).toMatchObject({ title: 'An order', includesTools: false, status: 'idle', page: { hasMore: false } });
  const texts = json.messages.flatMap(({ content }: { content: { text?: string }[] }) =>
    content.map((part) => part.text),
  );
  expect(texts.filter(Boolean)).toEqual(['Found.', 'I **look**.', 'Where is my order?']);
  for (const hidden of [SECRET, 'TOOL-INPUT', 'TOOL-OUTPUT', 'look_up', sessionId]) expect(text).not.toContain(hidden);

  const file = await stranger().post('/shares/file', { token, fileId });
  expect([file.status, file.text]).toEqual([200, 'shared bytes']);
  expect(file.headers.get('content-type')).toBe('application/octet-stream');
  expect(file.headers.get('content-disposition')).toBe('attachment');
  const other = await openSession();
  expect((await stranger().post('/shares/file', { token, fileId: other.fileId })).status).toBe(404);
});

test('tool calls with their inputs and results are shown only by a link that was created for it', async () => {
  const { sessionId } = await openSession();
  const { token } = await share(sessionId, { includesTools: true });
  const { text } = await read(token);
  for (const shown of ['TOOL-INPUT', 'TOOL-OUTPUT', 'look_up']) expect(text).toContain(shown);
});

test('a file that a tool created is opened only by a link that shows tool calls', async () => {
  const { client } = service;
  const photos = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
  onTestFinished(() => void photos.close());
  await new Promise<void>((resolve) => photos.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(photos.address() as AddressInfo).port}/`;
  const { agentId } = await client.agents.create({
    name: 'Photographer',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: { script: [{ toolCalls: [{ name: 'photo', input: {} }] }, { text: 'Here.' }] },
    },
    tools: [
      {
        type: 'http',
        name: 'photo',
        description: 'Takes a photo.',
        inputSchema: { type: 'object' },
        request: { method: 'GET', url },
        approval: 'never',
      },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  const created = (await client.files.list({ environment: 'staging' })).data.filter(
    (one) => one.sessionId === sessionId,
  );
  expect(created).toHaveLength(1);
  const open = async (includesTools: boolean) => {
    const { token } = await share(sessionId, { includesTools });
    return (await stranger().post('/shares/file', { token, fileId: created[0]!.fileId })).status;
  };
  expect([await open(false), await open(true)]).toEqual([404, 200]);
});

test('a file in the result of a client’s tool is opened only by a link that shows tool calls, unless a message names it too', async () => {
  const { client } = service;
  const script = [{ toolCalls: [{ name: 'look_up', input: {} }] }, { text: 'Found.' }];
  const model = { provider: 'scripted' as const, model: 'demo', settings: { script } };
  const { agentId } = await client.agents.create({ name: 'Scanner', model, tools: [lookUp] });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Scan it' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  const { waitingFor } = await client.sessions.get(sessionId);
  const { fileId } = await client.files.upload(new Blob(['scan']), { environment: 'staging', filename: 'scan.txt' });
  const toolCallId = (waitingFor as { toolCallIds: string[] }).toolCallIds[0]!;
  await client.sessions.sendToolResult(sessionId, { toolCallId, output: { type: 'file', fileId } });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  const tokens = await Promise.all(
    [false, true].map(async (includesTools) => (await share(sessionId, { includesTools })).token),
  );
  const open = () =>
    Promise.all(tokens.map(async (token) => (await stranger().post('/shares/file', { token, fileId })).status));
  expect(await open()).toEqual([404, 200]);
  await client.sessions.sendMessage(sessionId, { content: [{ type: 'file', fileId }] });
  expect(await open()).toEqual([200, 200]);
});

test('a link shows what is said after it was created, and the pages of a long conversation', async () => {
  const { sessionId } = await openSession();
  const { token } = await share(sessionId);
  await service.client.sessions.sendMessage(sessionId, { content: 'Later' });
  await expect.poll(async () => (await read(token)).text).toContain('Later');
  const { json } = await read(token);
  const older = await read(token, { cursor: json.page.nextCursor });
  expect([older.status, older.json.messages]).toEqual([200, []]);
  expect((await read(token, { cursor: 'bm9uc2Vuc2U' })).status).toBe(400);
});

test('a revoked, expired, wrong or truncated link shows nothing, and neither does that of a deleted session', async () => {
  const { sessionId, fileId } = await openSession();
  const other = await openSession();
  const { shareId, token } = await share(sessionId);
  const forged = `${token.slice(0, -8)}${token.at(-8) === 'a' ? 'b' : 'a'}${token.slice(-7)}`;
  // In form a secret of this link, with a right checksum.
  const { organizationId, keyId } = parseSecret(token, 'sbs')!;
  const guessed = newSecret(organizationId, keyId, 'sbs');
  for (const wrong of [forged, guessed, token.slice(0, -1), 'sbs_', service.adminKey, token.replace('sbs_', 'sbi_')]) {
    const refused = await read(wrong);
    expect([refused.status, refused.json.code], wrong.slice(0, 8)).toEqual([404, 'link_invalid']);
  }
  // A link is of one session.
  await expect(service.client.sessions.unshare(other.sessionId, shareId)).rejects.toMatchObject({ status: 404 });
  expect((await read(token)).status).toBe(200);
  await service.client.sessions.unshare(sessionId, shareId);
  expect((await read(token)).json.code).toBe('link_invalid');
  expect((await stranger().post('/shares/file', { token, fileId })).json.code).toBe('link_invalid');
  await expect(service.client.sessions.unshare(sessionId, shareId)).rejects.toMatchObject({ status: 404 });

  const last = await share(other.sessionId);
  await service.client.sessions.cancel(other.sessionId);
  expect((await read(last.token)).json).toMatchObject({ status: 'cancelled' });
  await service.client.sessions.delete(other.sessionId);
  expect((await read(last.token)).json.code).toBe('link_invalid');
});

test('a link expires, and its row is deleted then', async () => {
  const clock = createManualClock();
  const own = await startTestService({ clock });
  onTestFinished(() => clock.passWhile(own.stop()));
  const { agentId } = await own.client.agents.create({ name: 'A', model: { provider: 'scripted', model: 'demo' } });
  const { sessionId } = await own.client.sessions.open({ agentId, environment: 'staging' });
  const token = tokenIn(
    await own.client.sessions.share(sessionId, { expiresAt: new Date(clock.now().getTime() + 5000).toISOString() }),
  );
  const visitor = openBrowser(own);
  expect((await visitor.post('/shares/read', { token })).status).toBe(200);
  await clock.advance(5001);
  expect((await visitor.post('/shares/read', { token })).json.code).toBe('link_invalid');
  expect((await own.client.sessions.shares(sessionId)).data).toEqual([]);
  await clock.advance(60_000);
  await expect.poll(() => own.db.query(sql`select 1 from session_shares`)).toEqual([]);
});

test('a link ends within a year, and a session has at most fifty', async () => {
  const { sessionId } = await openSession();
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  for (const expiresAt of [at(-1), at(367 * DAY_MS), '0000-01-01T00:00:00Z']) {
    await expect(service.client.sessions.share(sessionId, { expiresAt })).rejects.toMatchObject({ status: 400 });
  }
  const { share: created } = await service.client.sessions.share(sessionId);
  expect(Date.parse(created.expiresAt) - Date.parse(created.createdAt)).toBe(7 * DAY_MS);
  for (let count = 1; count < 50; count += 1) await service.client.sessions.share(sessionId);
  await expect(service.client.sessions.share(sessionId)).rejects.toMatchObject({ code: 'conflict' });
  const ids: string[] = [];
  for await (const one of service.client.sessions.shares(sessionId, { limit: 20 })) ids.push(one.shareId);
  expect(new Set(ids).size).toBe(50);
});

test('creating and revoking need write, are in the event log without the secret, and keys keep to their environments', async () => {
  const { sessionId } = await openSession();
  const viewer = await join(owner, service, 'Vito', 'viewer');
  const member = await join(owner, service, 'Mel', 'member');
  const path = `/sessions/${sessionId}/shares`;
  expect((await viewer.api('POST', path, {})).status).toBe(403);
  expect((await viewer.api('GET', path)).status).toBe(200);
  const created = await member.api('POST', path, { title: 'From Mel' });
  expect(created.status).toBe(201);
  expect(created.json.share).toMatchObject({ createdBy: 'Mel', sessionId });
  const { shareId } = created.json.share;
  const token = tokenIn(created.json);
  expect((await viewer.api('DELETE', `${path}/${shareId}`)).status).toBe(403);

  const limited = async (definition: object) => {
    const { secret } = (await service.client.keys.create({ name: 'limited', ...definition } as never)) as unknown as {
      secret: string;
    };
    watchSecret(secret);
    return new Signalbox({ baseUrl: service.url, apiKey: secret });
  };
  const reader = await limited({ permission: 'read' });
  await expect(reader.sessions.share(sessionId)).rejects.toMatchObject({ status: 403 });
  const elsewhere = await limited({ permission: 'write', environments: ['production'] });
  await expect(elsewhere.sessions.share(sessionId)).rejects.toMatchObject({ status: 403 });
  await expect(elsewhere.sessions.unshare(sessionId, shareId)).rejects.toMatchObject({ status: 403 });

  expect((await member.api('DELETE', `${path}/${shareId}`)).status).toBe(200);
  const { data } = await service.client.events.list({ sessionId, limit: 100 });
  const of = (type: string) => data.find((event) => event.type === type)!;
  expect(of('session.shared')).toMatchObject({
    actor: { type: 'user', name: 'Mel' },
    changes: { shareId: [null, shareId], includesTools: [null, false] },
  });
  expect(of('session.share_revoked').changes).toEqual({ shareId: [shareId, null] });
  expect(JSON.stringify(data)).not.toContain(token.slice(48));
});

test('reading works only from the console’s own origin, needs no cookie, and is limited for each address', async () => {
  const own = await startTestService();
  onTestFinished(() => own.stop());
  const session = await own.client.agents.create({ name: 'A', model: { provider: 'scripted', model: 'demo' } });
  const { sessionId } = await own.client.sessions.open({ agentId: session.agentId, environment: 'staging' });
  const token = tokenIn(await own.client.sessions.share(sessionId));
  const foreign = await openBrowser(own, { origin: 'https://evil.example' }).post('/shares/read', { token });
  expect(foreign.status).toBe(403);
  const visitor = openBrowser(own);
  const first = await visitor.post('/shares/read', { token });
  expect(first.status).toBe(200);
  expect(visitor.cookies.size).toBe(0);
  let last = first.status;
  for (let count = 0; count < 700 && last !== 429; count += 1) {
    last = (await visitor.post('/shares/read', { token: 'sbs_no' })).status;
  }
  expect(last).toBe(429);
  expect((await visitor.post('/shares/read', { token })).status).toBe(429);
});
