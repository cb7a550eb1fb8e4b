// Runs the bot as a user would, and checks what it prints and what the service has recorded.
import { readFileSync } from 'node:fs';
import type { Approvers } from '@signalbox/client';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestService, type TestService, watchSecret } from '../../packages/server/test/support/service.ts';
import { type Running, runProgram } from '../run-program.ts';

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService();
  // As the README creates it.
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  const scopes = /keys create .*--scopes (\S+)/.exec(readme)![1]!.split(',');
  const created = await service.client.keys.create({
    name: 'approval-bot',
    scopes: scopes as ('sessions:read' | 'approvals:decide')[],
  });
  key = created.secret!;
  watchSecret(key);
});

let bot: Running;
beforeEach(() => {
  bot = runProgram('approval-bot/bot.ts', [], {
    SIGNALBOX_URL: service.url,
    SIGNALBOX_API_KEY: key,
    USER_NAME: 'maria',
    POLL_SECONDS: '0.05',
  });
});
afterEach(async () => {
  for await (const { operationId } of service.client.approvals.list({ status: 'pending' })) {
    // Approvals that are left to people stay.
    await service.client.approvals.deny(operationId).catch(() => undefined);
  }
  bot.process.stdin!.end();
  expect(await bot.ended, bot.printed).toBe(0);
});

const type = (line: string) => bot.process.stdin!.write(`${line}\n`);

/** A session that waits for an approval; the id of the approval. */
async function request(input: object, by?: Approvers): Promise<string> {
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: 'Support',
    model: {
      provider: 'scripted',
      model: 'support',
      settings: { script: [{ toolCalls: [{ name: 'refund', input }] }, { text: 'Done' }] },
    },
    tools: [
      {
        type: 'client',
        name: 'refund',
        description: 'Refunds.',
        inputSchema: { type: 'object' },
        approval: by ? { policy: 'always', by } : 'always',
      },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    const requested = chunks.find((chunk) => chunk.type === 'approval.requested');
    if (requested) return requested.operationId;
  }
  throw new Error('The session ended');
}

const statusOf = async (operationId: string) => (await service.client.approvals.get(operationId)).status;

test('a key approves or denies, on behalf of the user', async () => {
  const first = await request({ cents: 4900 });
  await bot.until('refund {"cents":4900}');
  type('a');
  await bot.until('  approved\n');
  const second = await request({ cents: 9900 });
  await bot.until('refund {"cents":9900}');
  type('d Too much.');
  await bot.until('  denied\n');
  expect(await service.client.approvals.get(first)).toMatchObject({
    status: 'approved',
    resolvedBy: { type: 'api_key', name: 'approval-bot', onBehalfOf: 'maria' },
  });
  expect(await service.client.approvals.get(second)).toMatchObject({ status: 'denied', reason: 'Too much.' });
});

test('what someone else decides is no longer asked, and the next one is', async () => {
  const first = await request({ cents: 1 });
  await bot.until('refund {"cents":1}');
  await service.client.approvals.deny(first, { onBehalfOf: 'joe' });
  await bot.until('  denied by joe\n');
  const second = await request({ cents: 2 });
  await bot.until('refund {"cents":2}');
  type('a');
  await bot.until('  approved\n');
  expect(await statusOf(second)).toBe('approved');
});

test('an approval that was skipped stays pending, and one that is left to others is not shown', async () => {
  const skipped = await request({ cents: 3 });
  const forPeople = await request({ cents: 4 }, { people: true });
  const mine = await request({ cents: 5 });
  await bot.until('refund {"cents":3}');
  type('s');
  await bot.until('refund {"cents":5}');
  type('a');
  await bot.until('  approved\n');
  expect(bot.printed).not.toContain('"cents":4');
  const statuses = [await statusOf(skipped), await statusOf(forPeople), await statusOf(mine)];
  expect(statuses).toEqual(['pending', 'pending', 'approved']);
});

test('nothing in an input reaches the terminal as a command', async () => {
  await request({ note: '\u001b[2J and \u009b2J' });
  await bot.until(' and �2J');
  type('d');
  await bot.until('  denied\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for.
  expect(bot.printed).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
});

test('its key can neither open a session nor change an agent', async () => {
  const client = service.clientWith(key);
  const { data } = await service.client.agents.list();
  const { agentId } = data[0]!;
  await expect(client.sessions.open({ agentId, environment: 'production' })).rejects.toMatchObject({ status: 403 });
  await expect(client.agents.create({ name: 'Mine', model: 'scripted/x' })).rejects.toMatchObject({ status: 403 });
  await expect(client.sessions.list()).resolves.toBeDefined();
});
