// The usage report, in a real browser on a real service.
import { expect, test } from 'vitest';
import { parsePrices } from '../../server/src/usage/prices.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

test('usage is reported by day, agent, environment and model, and an unknown cost is not shown as zero', async () => {
  const prices = parsePrices('{ "scripted/priced": { "inputUsd": 3, "outputUsd": 15 } }');
  const console = await startConsole({ config: { prices } });
  const { client } = console.service;
  const run = async (name: string, model: string, environment: string) => {
    const { agentId } = await client.agents.create({
      name,
      model: { provider: 'scripted', model, settings: { script: [{ text: 'four words of answer' }] } },
    });
    const { sessionId } = await client.sessions.open({ agentId, environment, input: 'two words', closeOnIdle: true });
    await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('completed');
  };
  await run('Costly', 'priced', 'production');
  await run('Free of charge', 'local', 'staging');

  const viewer = await console.person('viewer');
  const page = await console.open(viewer, '/usage');
  const total = page.getByRole('region', { name: 'Total' });
  await total.getByText(/^\$0\.0000/).waitFor();
  await total.getByText('1 model call had no price and is not included.').waitFor();
  await page.getByRole('heading', { name: 'Tokens by day' }).waitFor();

  await page.getByLabel('Group by').selectOption('agent');
  const rows = page.getByRole('table', { name: 'Usage by agent' }).getByRole('row');
  await rows
    .filter({ hasText: 'Costly' })
    .getByText(/^\$0\.0000/)
    .waitFor();
  await rows.filter({ hasText: 'Free of charge' }).getByText('no price').waitFor();
  await page.getByLabel('Environment').selectOption('staging');
  await expect.poll(() => rows.count()).toBe(2);
  // No call had a price, so the sum is unknown too.
  await total.getByText('no price').waitFor();
  await page.getByLabel('Period').selectOption('7');
  await page.reload();
  await rows.filter({ hasText: 'Free of charge' }).waitFor();
  expect(await page.getByLabel('Period').inputValue()).toBe('7');
  expect(await rows.count()).toBe(2);
  await expectAccessible(page);

  await page.getByLabel('Environment').selectOption('');
  await page.getByLabel('Group by').selectOption('model');
  await page.getByRole('table', { name: 'Usage by Model' }).getByText('scripted/priced').waitFor();
  await page.getByLabel('Period').selectOption('last-month');
  await page.getByText('No model calls in this period.').waitFor();
  expect(await total.getByText('no price').count()).toBe(0);
  await page.getByLabel('Group by').selectOption('day');
  await page.getByText('No model calls last month.').waitFor();
});
