// An open session page during a restart of the service, on the same database and address.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../server/test/support/postgres.ts';
import { startTestService, type TestService } from '../../server/test/support/service.ts';
import { startConsole, type TestConsole } from './support/console.ts';
import { consoleDir } from './support/console-dir.ts';

// On shutdown the service aborts a step immediately, as a crash would.
const config = { graceSeconds: 0 };
let database: TestDatabase;
let console: TestConsole;
let again: TestService | undefined;
beforeAll(async () => {
  database = await createTestDatabase();
  console = await startConsole({ database, config });
});
afterAll(async () => {
  await again?.stop();
  await database.drop();
});

test('a turn is shown to its end across a restart of the service, with nothing lost or duplicated', async () => {
  const words = Array.from({ length: 60 }, (_, index) => `w${index + 1}`);
  const tool = { type: 'client' as const, name: 'look_up', description: 'Looks up.', inputSchema: { type: 'object' } };
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name: 'Talker',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: {
        script: [
          { text: 'Before it.', toolCalls: [{ name: 'look_up', input: {} }] },
          { text: words.join(' '), tokenDelayMs: 60 },
        ],
      },
    },
    tools: [tool],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Say it all' });
  const page = await console.open(console.owner, `/sessions/${sessionId}`);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('waiting for result').waitFor();
  const { waitingFor } = await client.sessions.get(sessionId);
  await client.sessions.sendToolResult(sessionId, { toolCallId: waitingFor!.toolCallIds[0]!, output: 'found' });
  await conversation.getByText('w5 w6').waitFor();

  const { port } = new URL(console.origin);
  await console.service.stop();
  await page.getByRole('status').filter({ hasText: 'Reconnecting' }).waitFor();
  // The text stays, and no error is shown.
  expect(await conversation.getByText('Before it.').count()).toBe(1);
  expect(await page.getByRole('alert').count()).toBe(0);

  again = await startTestService({ database, consoleDir, config: { ...config, port: Number(port) } });
  const { sessions } = again.client;
  await conversation.getByText('w60').waitFor({ timeout: 60_000 });
  await expect.poll(async () => (await sessions.get(sessionId)).status).toBe('idle');
  await expect.poll(() => page.getByText('Reconnecting').count()).toBe(0);
  const seen = async () => (await conversation.innerText()).match(/\bw\d+\b/g);
  await expect.poll(seen).toEqual(words);
  await conversation.getByRole('button', { name: 'Look up' }).click();
  for (const text of ['Say it all', 'Before it.', 'found'])
    expect(await conversation.getByText(text).count(), text).toBe(1);

  // The restart did interrupt a step: the model call was retried, and its earlier text was dropped.
  expect((await sessions.chunks(sessionId, { types: ['message.reset'] })).data).toHaveLength(1);

  // The page works as before, and shows the same after a reload.
  await page.getByRole('textbox', { name: 'Message' }).fill('once more');
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
  await conversation.getByText('once more').waitFor();
  const shown = await page.getByRole('list').filter({ hasText: 'Say it all' }).getByRole('listitem').count();
  expect(shown).toBeGreaterThanOrEqual(5);
  await page.reload();
  await expect.poll(async () => (await seen())?.slice(0, 60)).toEqual(words);
});
