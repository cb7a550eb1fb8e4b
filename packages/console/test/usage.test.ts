// The usage report, in a real browser on a real service.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newUuid, uuidOf } from '../../server/src/lib/ids.ts';
import { parsePrices } from '../../server/src/usage/prices.ts';
import { insertUsage } from '../../server/src/usage/usage.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';
import { hasFocus } from './support/keyboard.ts';

test('a budget is created, shown with what is spent of it, changed and deleted', async () => {
  const console = await startConsole();
  const page = await console.open(console.owner, '/budgets');
  await page.getByText('No budgets yet').waitFor();
  await page.getByRole('button', { name: 'Create budget' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Limit in US dollars').fill('-1');
  await dialog.getByRole('button', { name: 'Create budget' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('Limit in US dollars').fill('500');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Create budget' }).click();
  const row = page.getByRole('table', { name: 'Budgets' }).getByRole('row').filter({ hasText: 'monthly' });
  await row.getByText('$0.00 of $500.00 a month').waitFor();
  await row.hover();
  await row.getByRole('button', { name: 'Actions for monthly' }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await dialog.getByLabel('Limit in US dollars').fill('0.5');
  await dialog.getByRole('button', { name: 'Save budget' }).click();
  await row.getByText('$0.00 of $0.50 a month').waitFor();
  await row.hover();
  await row.getByRole('button', { name: 'Actions for monthly' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete budget' }).click();
  await page.getByText('No budgets yet').waitFor();
});

test('a new budget replaces none: its name is refused at the field if there is one, or if it is malformed', async () => {
  const console = await startConsole();
  const { client } = console.service;
  const page = await console.open(console.owner, '/budgets');
  const dialog = page.getByRole('dialog');
  const name = dialog.getByLabel('Name');
  const create = page.getByRole('button', { name: 'Create budget' });
  await create.click();
  expect(await name.inputValue()).toBe('monthly');
  // Created meanwhile by another admin.
  const { createdAt } = await client.budgets.set('monthly', { limitUsd: 500, period: 'month' });
  await dialog.getByLabel('Limit in US dollars').fill('1');
  const send = dialog.getByRole('button', { name: 'Create budget' });
  await send.click();
  await dialog.getByText('Name is taken by another budget').waitFor();
  await expect.poll(() => hasFocus(name)).toBe(true);
  expect(await client.budgets.list()).toMatchObject([
    { name: 'monthly', limitUsd: 500, createdAt, updatedAt: createdAt },
  ]);

  for (const [malformed, refusal] of [
    ['new one', /^Name must be 1 to 63 lower-case letters/],
    ['', 'Name must not be empty.'],
  ] as const) {
    await name.fill(malformed);
    await send.click();
    await dialog.getByText(refusal).waitFor();
    expect(await dialog.getByRole('alert').count()).toBe(1);
  }
  await name.fill('daily');
  await send.click();
  await page.getByText('Budget created').waitFor();
  await page.getByRole('row').filter({ hasText: 'daily' }).waitFor();
  await create.click();
  expect(await name.inputValue()).toBe('');
});

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
    return sessionId;
  };
  const costly = await run('Costly', 'priced', 'production');
  const { agentId } = await client.sessions.get(costly);
  const owner = { organizationId: uuidOf('org', console.service.organizationId), agentId: uuidOf('agt', agentId) };
  const searched = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, webSearches: 3, costUsd: 0 };
  await console.service.db.execute(
    insertUsage(
      { ...owner, environment: 'production', endUserId: null, keyId: null },
      { operationId: newUuid(), model: 'scripted/priced', usage: searched },
      new Date(),
    ),
  );
  await run('Free of charge', 'local', 'staging');

  const viewer = await console.person('viewer');
  const page = await console.open(viewer, '/usage');
  const total = page.getByRole('region', { name: 'Total' });
  await total.getByText(/^(<)?\$0\.000/).waitFor();
  await total.getByText('1 unpriced').waitFor();
  await total.getByText('3 searches').waitFor();
  await page.getByText('1 model call had no price and is not included.').waitFor();
  await page.getByRole('heading', { name: 'Tokens by day' }).waitFor();

  const groupBy = (name: string) => page.getByRole('radio', { name, exact: true }).check({ force: true });
  await groupBy('Agent');
  const rows = page.getByRole('table', { name: 'Usage by agent' }).getByRole('row');
  await rows
    .filter({ hasText: 'Costly' })
    .getByText(/^(<)?\$0\.000/)
    .waitFor();
  await rows.filter({ hasText: 'Free of charge' }).getByText('no price').waitFor();
  const chart = page.getByRole('figure', { name: 'Cost by agent' });
  await chart.getByText('Show as table').click();
  await chart.getByRole('columnheader', { name: 'Costly' }).waitFor();
  await page.getByLabel('Search groups').fill('cost');
  await expect.poll(() => rows.count()).toBe(2);
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toMatch(/^usage-by-agent-.*\.csv$/);
  const text = readFileSync(await file.path(), 'utf8');
  expect(text).toMatch(/^\ufeffagent,name,costUsd,.*\r\nagt_\w+,Costly,0\.0000\d*,/);
  expect(text).not.toContain('Free of charge');
  await page.getByLabel('Search groups').fill('');
  const switchTo = async (name: string) => {
    await page.getByRole('button', { name: /^Environment:/ }).click();
    await page.getByRole('menuitemcheckbox', { name }).click();
  };
  await switchTo('staging');
  await expect.poll(() => rows.count()).toBe(2);
  // No call had a price, so the sum is unknown too.
  await total.getByText('no price').waitFor();
  await page.getByLabel('Period').selectOption('7');
  await page.reload();
  await rows.filter({ hasText: 'Free of charge' }).waitFor();
  expect(await page.getByLabel('Period').inputValue()).toBe('7');
  expect(await rows.count()).toBe(2);
  await expectAccessible(page);

  await switchTo('All environments');
  await groupBy('Model');
  await page.getByRole('table', { name: 'Usage by model' }).getByText('scripted/priced').waitFor();
  await page.getByLabel('Period').selectOption('last-month');
  await page.getByText('No model calls in this period').first().waitFor();
  expect(await total.getByText('no price').count()).toBe(0);
  await groupBy('Day');
  await page.getByText('No model calls in this period').waitFor();

  // Wherever an amount is shown, and nowhere else.
  const dated = console.service.client.organization.get().then(({ pricesDate }) => pricesDate);
  expect(await dated).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  for (const path of ['', '/sessions', `/sessions/${costly}`, `/sessions/${costly}?view=trace`]) {
    const shown = await console.open(viewer, path);
    await shown.getByText(/^Built-in prices are of \w+ \d+, \d{4}\.$/).waitFor();
    expect(await shown.getByText('Built-in prices are of').count()).toBe(1);
    await shown.close();
  }
  const keys = await console.open(console.owner, '/keys');
  await keys.getByText('Built-in prices are of').waitFor();
  const agents = await console.open(viewer, '/agents');
  await agents.getByText('Costly').first().waitFor();
  expect(await agents.getByText('Built-in prices are of').count()).toBe(0);
});

test('the days of a period are typed with the keyboard, and one that is left unfinished changes nothing', async () => {
  const console = await startConsole();
  const page = await console.open(console.owner, '/usage?period=custom&from=2026-01-01&to=2026-01-31', {
    locale: 'en-US',
  });
  await page.getByText('Jan 1 – 31, 2026 (UTC)').waitFor();
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/api/v1/usage') asked.push(searchParams.get('from')!.slice(0, 10));
  });
  const day = page.getByLabel('First day (UTC)');
  await day.focus();
  await page.keyboard.type('12152025');
  await page.getByText('Dec 15, 2025 – Jan 31, 2026 (UTC)').waitFor();
  expect(await day.inputValue()).toBe('2025-12-15');
  // Not for years such as 0002 and 0020.
  expect(asked.filter((from) => from < '2025')).toEqual([]);
  await day.focus();
  await page.keyboard.press('Delete');
  await page.getByLabel('Last day (UTC)').focus();
  expect(await day.inputValue()).toBe('2025-12-15');
});
