// A turn that continues without what its provider refuses, in a real browser on a real service.
import { expect, test } from 'vitest';
import { chatCompletions } from '../../server/test/support/openai-server.ts';
import { refuse, startProviderServer } from '../../server/test/support/provider-server.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

test('a failed turn continues without the message that is refused, and a call shows the tools that its model did not get', async () => {
  const console = await startConsole();
  const { client } = console.service;
  const error = { error: { message: 'x', type: 'invalid_request_error', param: 'messages[1].content', code: null } };
  const provider = await startProviderServer('/v1', (response, { text, body }) =>
    (text.includes('not for models')
      ? refuse(400, { body: error })
      : chatCompletions.respond({ parts: [{ text: ['Here I am.'] }] }))(response, { body } as never),
  );
  const { agentId } = await client.agents.create({
    name: 'Clerk',
    instructions: 'Be brief.',
    model: { provider: 'openai-compatible', model: 'small', baseUrl: provider.url },
    tools: [{ type: 'client', name: 'odd', description: 'Odd', inputSchema: { type: 'object', anyOf: [false] } }],
  } as never);
  const input = 'This message is not for models, and it is long';
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');

  const member = await console.person('member');
  const page = await console.open(member, `/sessions/${sessionId}`);
  const button = page.getByRole('button', { name: 'Continue without “This message is not for models, and it i…”' });
  await button.waitFor();
  await expectAccessible(page);
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 740 });
    const box = await button.boundingBox();
    expect(box!.x + box!.width).toBeLessThanOrEqual(width);
  }
  await button.click();
  await page.getByRole('region', { name: 'Conversation' }).getByText('Here I am.').waitFor();
  await expect.poll(() => client.sessions.get(sessionId)).toMatchObject({ stopReason: 'endTurn', error: null });

  const { data } = await client.sessions.turns(sessionId);
  await page.setViewportSize({ width: 1280, height: 800 });
  const { operationId } = data[0]!.operations.at(-1)!;
  await page.goto(page.url().replace(/sessions.*/, `sessions/${sessionId}?tab=trace&step=${operationId}`));
  await page.getByRole('dialog').getByRole('tab', { name: 'Prompt' }).click();
  await page.getByText('1 tool left out of the turn').waitFor();
  await page.getByText('(A message is left out here.)').waitFor();
  await provider.close();
}, 120_000);
