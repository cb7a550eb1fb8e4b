// What a refusal tells the page of an end user: why, but nothing of what a token can't read.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPrices } from '../../src/usage/prices.ts';
import { asProblem, type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const endUser = { id: 'user_mara' };
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    config: { prices: createPrices({ 'scripted/priced': { inputUsd: 1_000, outputUsd: 1_000 } }) },
  });
});
afterAll(() => service.stop());

async function tokenFor(agentId: string, client = service.client): Promise<string> {
  const scopes = ['read', 'send', 'open'] as const;
  return (await client.sessionTokens.create({ agentId, environment: 'production', endUser, scopes: [...scopes] }))
    .token!;
}

const open = (token: string, body: unknown, idempotencyKey?: string) =>
  send(service.url, 'POST', '/sessions', {
    key: token,
    body,
    ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
  });

function expectHidden(answer: RawResponse, code: string, hidden: RegExp): void {
  expect(answer.json).toMatchObject({ code });
  expect(answer.text).not.toMatch(hidden);
}

test('a file that the model does not take is refused without naming the model', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'openai/gpt-secret' });
  const token = await tokenFor(agentId);
  const upload = await send(service.url, 'POST', '/files', {
    key: token,
    raw: 'PK\u0003\u0004\u0000',
    headers: { 'content-type': 'application/zip' },
  });
  const input = [{ type: 'file', fileId: upload.json.file.fileId }];
  const asKey = await open(service.adminKey, { agentId, environment: 'production', input });
  expect(asProblem(asKey).detail).toContain('gpt-secret');
  for (const answer of [
    await open(token, { input }),
    await open(token, { input }, 'once'),
    await open(token, { input }, 'once'),
  ]) {
    expectHidden(answer, 'file_not_taken', /openai|gpt-secret/);
    expect(answer.json.errors).toMatchObject([{ path: 'input[0]' }]);
  }
});

test('a session with a budget that its model has no price for is refused without either', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/priced' });
  const { sessionId } = await service.client.sessions.open({
    agentId,
    environment: 'production',
    endUser,
    budget: { maxCostUsd: 3 },
  });
  await service.client.agents.update(agentId, { model: 'scripted/unpriced' });
  const token = await tokenFor(agentId);
  const fork = (key: string) => send(service.url, 'POST', `/sessions/${sessionId}/fork`, { key, body: {} });
  expect(asProblem(await fork(service.adminKey)).detail).toContain('scripted/unpriced');
  expectHidden(await fork(token), 'budget_invalid', /unpriced|maxCostUsd/);
  const message = await send(service.url, 'POST', `/sessions/${sessionId}/messages`, {
    key: token,
    body: { content: 'Hello' },
  });
  expectHidden(message, 'budget_invalid', /unpriced|maxCostUsd/);
});

test('a key whose sessions have cost what they can refuses its tokens without saying how much', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/priced' });
  const { secret } = await service.client.keys.create({ name: 'k', permission: 'write', maxCostUsdPerDay: 0.000125 });
  const client = service.clientWith(secret!);
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  for await (const { chunks } of client.sessions.stream(sessionId))
    if (chunks.some(({ type }) => type === 'turn.completed')) break;
  const answer = await open(await tokenFor(agentId, client), {});
  expectHidden(answer, 'key_budget_exceeded', /0\.000125|USD/);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
});
