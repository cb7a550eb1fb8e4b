// A missing key of a model, in a real browser on a real service.
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
let sessionId: string;
beforeAll(async () => {
  console = await startConsole();
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Clerk', model: 'anthropic/claude-sonnet-4-5' });
  ({ sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'Hi' }));
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'turn.completed')) break;
  }
  expect((await client.sessions.get(sessionId)).error?.code).toBe('model_key_missing');
});

test('a missing key is in the overview and on the page of its session, with a link to where it is set', async () => {
  const page = await console.open(console.owner);
  const section = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Needs attention' }) });
  await section.getByText('Sessions fail because a model’s key is missing or rejected in').waitFor();
  await expectAccessible(page);
  await section.getByRole('link', { name: 'production' }).click();
  await page.waitForURL(/\/environments\/production$/);

  await page.goto(`${new URL(page.url()).origin}/console/${console.organizationId}/sessions/${sessionId}`);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('The environment production has no secret ANTHROPIC_API_KEY').waitFor();
  await page.getByText('Turn failed').first().waitFor();
  await page.getByRole('link', { name: 'Set the key in production' }).click();
  await page.waitForURL(/\/environments\/production$/);
});

test('a viewer sees who sets the key, and no link', async () => {
  const viewer = await console.person('viewer', 'Vito Viewer');
  const page = await console.open(viewer);
  await page.getByText('Sessions fail because a model’s key is missing or rejected in production').waitFor();
  await page.goto(`${new URL(page.url()).origin}/console/${console.organizationId}/sessions/${sessionId}`);
  await page.getByText('An admin sets it under Environments.').waitFor();
  expect(await page.getByRole('link', { name: 'Set the key in production' }).count()).toBe(0);
});
