// Session tokens: creating them, and the list of web pages that may use them.
import type { Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let client: Signalbox;
let agentId: string;
beforeAll(async () => {
  service = await startTestService();
  ({ client } = service);
  ({ agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' }));
});
afterAll(() => service.stop());

const endUser = { id: 'user_1', name: 'Mara' };
const forEndUser = () => ({ agentId, environment: 'production', endUser, scopes: ['read', 'open'] as const });

test('a token is in the response to its creation only, lasts as long as requested, and is recorded without itself', async () => {
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  const [of, forUser] = [
    await client.sessions.createToken(sessionId, { scopes: ['read', 'send'], expiresInSeconds: 60 }),
    await client.sessionTokens.create({ ...forEndUser(), scopes: ['read', 'open'] }),
  ];
  expect(of.scopes).toEqual(['read', 'send']);
  for (const { token } of [of, forUser]) expect(token).toMatch(/^sbt_[\w-]+\.[\w-]{43}$/);
  const seconds = (at: string) => (Date.parse(at) - Date.now()) / 1000;
  expect(seconds(of.expiresAt)).toBeGreaterThan(50);
  expect(seconds(of.expiresAt)).toBeLessThanOrEqual(60);
  expect(seconds(forUser.expiresAt)).toBeGreaterThan(3_590);
  const { data } = await client.events.list({ type: 'session_token.created' });
  expect(data.map(({ resource, sessionId: ofSession }) => [resource, ofSession])).toEqual([
    [{ type: 'agent', id: agentId }, null],
    [{ type: 'session', id: sessionId }, sessionId],
  ]);
  // The service checks at its end that no event, log line or stored response contains a token.
});

test('a repeated creation returns the same token to the same key', async () => {
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  const options = { idempotencyKey: 'once' };
  const first = await client.sessions.createToken(sessionId, { scopes: ['read'] }, options);
  expect(await client.sessions.createToken(sessionId, { scopes: ['read'] }, options)).toEqual(first);
});

test('no token is created for what does not exist, nor by a key that may not run sessions', async () => {
  const unknown = agentId.replace(/.$/, agentId.endsWith('0') ? '1' : '0');
  const refused = async (path: string, body: unknown, key = service.adminKey) => {
    const { status, code } = asProblem(await send(service.url, 'POST', path, { key, body }));
    return `${status} ${code}`;
  };
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  const reader = await client.keys.create({ name: 'reader', permission: 'read' });
  const staging = await client.keys.create({ name: 'staging', permission: 'write', environments: ['staging'] });
  const scopes = ['read'];
  const of = `/sessions/${sessionId}/tokens`;
  expect(await refused(of.replace(sessionId, sessionId.replace(/....$/, '0000')), { scopes })).toBe('404 not_found');
  expect(await refused('/session_tokens', { ...forEndUser(), agentId: unknown })).toBe('404 not_found');
  expect(await refused('/session_tokens', { ...forEndUser(), environment: 'nowhere' })).toBe('404 not_found');
  expect(await refused(of, { scopes: ['open'] })).toBe('400 invalid_request');
  expect(await refused(of, { scopes: [] })).toBe('400 invalid_request');
  expect(await refused(of, { scopes, expiresInSeconds: 86_401 })).toBe('400 invalid_request');
  expect(await refused(of, { scopes }, reader.secret)).toBe('403 insufficient_permission');
  expect(await refused(of, { scopes }, staging.secret)).toBe('403 insufficient_permission');
  expect(await refused('/session_tokens', forEndUser(), staging.secret)).toBe('403 insufficient_permission');
});

test('the list of allowed origins is replaced as a whole, recorded, and refuses what is not an origin', async () => {
  const allowedOrigins = ['https://app.example.com', 'https://*.example.com'];
  expect((await client.organization.get()).allowedOrigins).toEqual([]);
  expect((await client.organization.set({ allowedOrigins })).allowedOrigins).toEqual(allowedOrigins);
  expect((await client.organization.set({ allowedOrigins })).allowedOrigins).toEqual(allowedOrigins);
  expect((await client.organization.get()).allowedOrigins).toEqual(allowedOrigins);
  const { data } = await client.events.list({ type: 'organization.updated' });
  expect(data.map(({ changes }) => changes)).toEqual([{ allowedOrigins: [[], allowedOrigins] }]);
  const answer = await send(service.url, 'PUT', '/organization', {
    key: service.adminKey,
    body: { allowedOrigins: ['https://app.example.com', 'https://app.example.com/chat'] },
  });
  expect(asProblem(answer)).toMatchObject({ status: 400, errors: [{ path: 'allowedOrigins[1]' }] });
  const writer = await client.keys.create({ name: 'writer', permission: 'write' });
  const refused = await send(service.url, 'PUT', '/organization', {
    key: writer.secret!,
    body: { allowedOrigins: [] },
  });
  expect(asProblem(refused).code).toBe('insufficient_permission');
});
