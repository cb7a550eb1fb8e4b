// Fallback models and sessions that wait for their model, in the browser.
import { expect, test } from 'vitest';
import { refuse, startProviderServer } from '../../server/test/support/provider-server.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

test('an agent gets fallbacks in its form, and a session shows why its model is called again and when', async () => {
  const console = await startConsole();
  const member = await console.person('member');
  const { client } = console.service;
  const provider = await startProviderServer('/v1', refuse(503, { headers: { 'retry-after': '600' } }));
  const { agentId } = await client.agents.create({
    name: 'Helper',
    model: { provider: 'openai-compatible', model: 'first', baseUrl: provider.url },
  });

  const page = await console.open(member, `/agents/${agentId}`);
  await page.getByRole('button', { name: 'Add a fallback' }).click();
  const fallback = page.getByRole('group', { name: 'Fallback 1' });
  await fallback.getByLabel('Provider').selectOption('openai-compatible');
  await fallback.getByLabel('Model', { exact: true }).fill('second');
  await fallback.getByLabel('Base URL').fill(provider.url);
  await page.getByRole('button', { name: 'Add a fallback' }).click();
  await page.getByRole('button', { name: 'Remove fallback 2' }).click();
  await page.locator('summary').filter({ hasText: 'Limits' }).click();
  await page.getByLabel('Model outage (seconds)').fill('1200');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Version 2 saved').waitFor();
  expect(await client.agents.get(agentId)).toMatchObject({
    model: { model: 'first', fallbacks: [{ provider: 'openai-compatible', model: 'second', baseUrl: provider.url }] },
    limits: { modelOutageSeconds: 1200 },
  });

  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Hello' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  // The form requests lists of models too.
  expect(provider.requests.filter(({ path }) => path.endsWith('/chat/completions'))).toHaveLength(2);
  await page.goto(page.url().replace(/agents.*/, `sessions/${sessionId}`));
  await page
    .getByText(/^next attempt in \d+ min.*provider responded with HTTP 503/)
    .first()
    .waitFor();
  // Where the response would be.
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('The model is unavailable').waitFor();
  await conversation
    .getByText(
      /^The model is called again in \d+ min.* unavailable for too long, the turn fails, and can be retried\.$/,
    )
    .waitFor();
  await expectAccessible(page);
  await page.getByRole('tab', { name: 'Trace' }).click();
  await page.getByRole('row', { name: /^Model openai-compatible\/first, waiting/ }).waitFor();
  await provider.close();
}, 120_000);
