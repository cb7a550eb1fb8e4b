// The overview, in a real browser on a real service: it shows the current state, updates automatically, and links to the details.

import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import { recordEndings } from '../../server/src/agents/model-endings.ts';
import { alertBudgets } from '../../server/src/budgets/alerts.ts';
import { startOf } from '../../server/src/budgets/budgets.ts';
import { newUuid, uuidOf } from '../../server/src/lib/ids.ts';
import { knownModels } from '../../server/src/usage/known-models.ts';
import { createPrices } from '../../server/src/usage/prices.ts';
import { insertUsage } from '../../server/src/usage/usage.ts';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const hostile = '<img src=x onerror="document.title=1"><b>bold</b>';
const DAY_MS = 86_400_000;

let console: TestConsole;
let viewer: Person;
beforeAll(async () => {
  console = await startConsole({
    config: { prices: createPrices({ 'scripted/priced': { inputUsd: 3_000, outputUsd: 15_000 } }) },
  });
  viewer = await console.person('viewer', 'Vito Viewer');
});

/** Creates an agent that answers, or whose tool needs approval. */
async function createAgent(name: string, toolName?: string): Promise<string> {
  const { agentId } = await console.service.client.agents.create({
    name,
    model: {
      provider: 'scripted',
      model: 'priced',
      settings: { script: [...(toolName ? [{ toolCalls: [{ name: toolName, input: {} }] }] : []), { text: 'Done.' }] },
    },
    tools: toolName
      ? [{ type: 'client', name: toolName, description: 'Acts.', inputSchema: { type: 'object' }, effectful: true }]
      : [],
  });
  return agentId;
}

/** Opens a session, and returns when it has this status. */
async function openSession(agentId: string, status: string, closeOnIdle = false): Promise<string> {
  const { client } = console.service;
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go', closeOnIdle });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === status)) break;
  }
  return sessionId;
}

test('an empty installation links to Getting started until there is an agent or a session', async () => {
  const page = await console.open(console.owner);
  await page.getByText('Nothing is running yet.').waitFor();
  await page.getByText('No pending approvals.').waitFor();
  await page.getByText('No model calls in the last 7 days.').waitFor();
  // No webhook is there to deliver anything.
  await page.getByText('All good. No API key expires in the next 14 days.').waitFor();
  await expectAccessible(page);
  const link = page.getByRole('link', { name: 'Get started' });
  expect(await link.getAttribute('href')).toBe(`/console/${console.organizationId}/start`);
  await createAgent(hostile);
  await link.waitFor({ state: 'detached' });
  // Names are shown as text.
  await page.getByText(`Test created an agent: ${hostile}`).waitFor();
  expect(await page.locator('main :is(img, b)').count()).toBe(0);
});

test('usage without a model call costs nothing, as on the overview', async () => {
  const page = await console.open(viewer, '/usage');
  await page.getByRole('region', { name: 'Total' }).getByText('$0.00', { exact: true }).waitFor();
});

test('pending approvals, figures and problems update without a reload, and an approval is decided in place', async () => {
  const { client } = console.service;
  const page = await console.open(viewer, '', { viewport: { width: 1440, height: 900 } });
  const figures = page.getByRole('region', { name: 'Figures' });
  await figures.getByText('Error rate').waitFor();
  const agentId = await createAgent('Refund desk', 'pay_back');
  const sessionId = await openSession(agentId, 'waiting');
  await openSession(await createAgent('Answers'), 'completed', true);
  await client.keys.create({
    name: 'soon over',
    permission: 'read',
    expiresAt: new Date(Date.now() + DAY_MS).toISOString(),
  });

  await page.getByRole('region', { name: 'Needs you' }).getByRole('listitem').getByText('Refund desk').waitFor();
  await page.getByText('1 API key expires in the next 14 days').waitFor();
  // A viewer may not open the page of keys, so there is no link to it.
  expect(await page.getByRole('link', { name: /API key expires/ }).count()).toBe(0);
  await expectAccessible(page);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await expectAccessible(page);

  await page.getByRole('region', { name: 'Needs you' }).getByRole('link', { name: 'Pay back' }).click();
  await page.getByRole('heading', { name: 'Pay back', level: 1 }).waitFor();
  await page.goBack();
  await page.context().close();

  const owners = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  const needs = owners.getByRole('region', { name: 'Needs you' });
  await needs.getByRole('button', { name: 'Deny', exact: true }).click();
  // A second click within moments of the first decides nothing.
  const deny = needs.getByRole('button', { name: 'Deny now' });
  await expect
    .poll(async () => {
      await deny.click({ timeout: 2_000 }).catch(() => {});
      return deny.count();
    })
    .toBe(0);
  await owners.getByText('No pending approvals.').waitFor();
  await owners
    .getByText(/resolved an approval: denied/)
    .first()
    .waitFor();
  expect((await client.sessions.get(sessionId)).status).not.toBe('waiting');
  // Counts arrive some seconds late.
  await owners
    .getByRole('region', { name: 'Figures' })
    .getByText(/^2 turns$/)
    .waitFor();
  await owners.getByRole('table', { name: 'Latency by agent' }).getByRole('link', { name: 'Refund desk' }).waitFor();
  await expectAccessible(owners);

  // The points of a chart are read with the keyboard.
  const chart = owners.getByRole('slider', { name: 'Turn duration, by point' });
  await chart.focus();
  await owners.keyboard.press('End');
  expect(await chart.getAttribute('aria-valuetext')).toMatch(/Median \d+ ms|Median [\d.]+ s/);
  await owners.keyboard.press('ArrowLeft');
  expect(await chart.getAttribute('aria-valuetext')).toContain('Median –');
  await owners.getByRole('radio', { name: '7 d' }).check({ force: true });
  await expect.poll(() => new URL(owners.url()).search).toContain('range=7d');
});

test('a failing webhook is shown with a link, and marked in the navigation of every page', async () => {
  const { client } = console.service;
  // Nothing listens on this port.
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'http://127.0.0.1:9/' });
  const agentId = await createAgent('Speaks');
  await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  await expect.poll(async () => (await client.overview()).webhooks.failing).toBe(1);
  const page = await console.open(console.owner);
  await page.getByRole('link', { name: '1 webhook subscription failing now' }).click();
  await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
  const places = page.getByRole('navigation', { name: 'Pages' });
  await places.getByRole('link', { name: 'Webhooks failing' }).waitFor();
  await expectAccessible(page);
  await client.webhookSubscriptions.delete('staging');
  await places.getByRole('link', { name: 'Webhooks', exact: true }).waitFor();
});

test('a model that its provider ends is shown while an agent uses it, with its day and the agents', async () => {
  const { client, db } = console.service;
  const [known, { endsAt }] = Object.entries(knownModels().models).find(
    ([name, model]) => model.endsAt !== null && name.startsWith('openai/'),
  )!;
  const { agentId } = await client.agents.create({ name: 'Outdated', model: known as `openai/${string}` });
  const today = new Date(Date.parse(endsAt!) - 30 * DAY_MS);
  await recordEndings(db, uuidOf('org', console.organizationId), today);
  const page = await console.open(viewer);
  await page.clock.setFixedTime(today);
  await page.reload();
  const line = page.locator('section[aria-labelledby=care]').getByRole('listitem').filter({ hasText: known });
  await line.getByText(/ends on \w+ \d+, \d{4}\. Used by/).waitFor();
  await expectAccessible(page);
  await line.getByRole('link', { name: 'Outdated' }).click();
  await page.waitForURL(`**/agents/${agentId}`);
  await client.agents.archive(agentId);
  await page.goBack();
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await line.waitFor({ state: 'detached' });
});

test('a budget that was used up in a day that has ended, and alerted only after it, is shown with what was spent then', async () => {
  const { client, db } = console.service;
  const organizationId = uuidOf('org', console.organizationId);
  const midnight = startOf('day', new Date());
  const before = (seconds: number) => new Date(midnight.getTime() - seconds * 1_000);
  const agentId = uuidOf('agt', await createAgent('Spender'));
  for (const [environment, name] of [
    ['staging', 'in-time'],
    ['production', 'too-late'],
  ] as const) {
    await client.budgets.set(name, { limitUsd: 5, period: 'day', environment });
    await db.execute(sql`
      update budgets set created_at = ${before(DAY_MS)}, updated_at = ${before(DAY_MS)}
      where organization_id = ${organizationId} and name = ${name}`);
    const call = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd: 6 };
    await db.execute(
      insertUsage(
        { organizationId, agentId, environment, endUserId: null, keyId: null },
        { operationId: newUuid(), model: 'scripted/priced', usage: call },
        before(30),
      ),
    );
    await alertBudgets(db, organizationId, name === 'in-time' ? before(10) : new Date());
  }
  const page = await console.open(viewer);
  const needs = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem');
  const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(before(30));
  await needs.filter({ hasText: `too-late: $6.00 of $5.00 on ${day}` }).waitFor();
  expect(await needs.filter({ hasText: 'in-time' }).count()).toBe(0);
  await expectAccessible(page);
  for (const name of ['in-time', 'too-late']) await client.budgets.delete(name);
  await needs.filter({ hasText: 'too-late' }).waitFor({ state: 'detached' });
});

test('tokens and cost by day match the usage report, in the chart and in its table', async () => {
  const { data, total } = await console.service.client.usage.get();
  const today = data.at(-1)!;
  expect(total.costUsd).toBeGreaterThan(0);
  const page = await console.open(viewer, '/usage');
  const chart = page.getByRole('figure').filter({ hasText: 'Tokens by day' });
  await chart.getByText('Show as table').click();
  const rows = chart.getByRole('table', { name: 'Tokens by day' }).getByRole('row');
  await rows.last().waitFor();
  // The page begins with today and the 29 days before.
  expect(await rows.count()).toBe(1 + data.slice(-30).length);
  expect(await rows.last().getByRole('cell').allTextContents()).toEqual([
    expect.stringMatching(/^[A-Z][a-z]{2} \d+$/),
    today.inputTokens.toLocaleString('en'),
    today.outputTokens.toLocaleString('en'),
  ]);
  const cost = page.getByRole('figure').filter({ hasText: 'Cost by day' });
  await cost.getByText('Show as table').click();
  await cost.getByRole('cell', { name: /^\$\d/ }).last().waitFor();
  expect(Number((await cost.getByRole('cell').last().textContent())!.slice(1))).toBeCloseTo(today.costUsd!, 2);
  await expectAccessible(page);
});

test('while the oldest approval loads, or if it can’t be loaded, the overview never says that there is none', async () => {
  await openSession(await createAgent('Slow desk', 'pay_back'), 'waiting');
  const page = await console.open(viewer, '/agents');
  const isLoading = Promise.withResolvers<void>();
  const fails = Promise.withResolvers<void>();
  await page.route(/\/approvals\?.*limit=5\b/, async (route) => {
    isLoading.resolve();
    await fails.promise;
    await route.fulfill({ status: 422, json: { code: 'invalid_request', detail: 'no' } });
  });
  await page.getByRole('link', { name: 'Overview' }).click();
  await isLoading.promise;
  await page.getByRole('region', { name: 'Needs you' }).getByRole('link', { name: 'Approvals' }).waitFor();
  const none = page.getByText('No pending approvals.');
  expect(await none.count()).toBe(0);
  fails.resolve();
  await page.getByRole('alert').waitFor();
  expect(await none.count()).toBe(0);
});

test('that everything fails is said once, and one button tries all of it again', async () => {
  const page = await console.open(viewer, '/agents');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  const problem = { status: 500, contentType: 'application/problem+json' };
  const api = /\/api\/v1\/(?!events\?.*waitSeconds)/;
  await page.route(api, (route) =>
    route.fulfill({
      ...problem,
      body: JSON.stringify({ code: 'internal_error', detail: 'An internal error occurred' }),
    }),
  );
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('alert').first().waitFor();
  await expect.poll(() => page.locator('main .bone').count()).toBe(0);
  // A part that fails before the first one says so until that has failed too.
  await expect.poll(() => page.getByRole('alert').count()).toBe(1);
  await page.unroute(api);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('region', { name: 'Needs attention' }).waitFor();
  await page.getByRole('region', { name: 'Latest events' }).getByRole('listitem').first().waitFor();
  await page.getByRole('heading', { name: 'Cost by model' }).waitFor();
});

test('the figures of the navigation are of the environment that is shown, change with it, and are asked once', async () => {
  const { client } = console.service;
  for await (const { operationId } of client.approvals.list({ status: 'pending' })) {
    await client.approvals.deny(operationId);
  }
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'http://127.0.0.1:9/' });
  const agentId = await createAgent('Waits', 'pay_back');
  await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  await openSession(agentId, 'waiting');
  await expect.poll(async () => (await client.overview({ environment: 'staging' })).webhooks.failing).toBe(1);
  await expect.poll(async () => (await client.overview({ environment: 'staging' })).pendingApprovals).toBe(1);
  const page = await console.open(viewer, '/agents?environment=production');
  const places = page.getByRole('navigation', { name: 'Pages' });
  await places.getByRole('link', { name: 'Approvals 1 pending' }).waitFor();
  await places.getByRole('link', { name: 'Webhooks', exact: true }).waitFor();
  expect(await page.title()).toMatch(/^\(1\) /);
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/api/v1/overview') asked.push(searchParams.get('environment') ?? 'all');
  });

  // While those of another environment load, there are none rather than the former.
  const answer = Promise.withResolvers<void>();
  await page.route(/\/overview\?environment=staging/, async (route) => {
    await answer.promise;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Environment: production' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'staging' }).click();
  await places.getByRole('link', { name: 'Approvals', exact: true }).waitFor();
  answer.resolve();
  await places.getByRole('link', { name: 'Webhooks failing' }).waitFor();
  await places.getByRole('link', { name: 'Approvals 1 pending' }).waitFor();
  await page.getByRole('button', { name: 'Environment: staging' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'All environments' }).click();
  await places.getByRole('link', { name: 'Approvals 2 pending' }).waitFor();
  // One request has both. The latest events, which are about approvals, may cause one more.
  expect([...new Set(asked)].filter((environment) => environment !== 'production')).toEqual(['staging', 'all']);
  expect(asked.length).toBeLessThanOrEqual(3);
  await client.webhookSubscriptions.delete('staging');
});

test('during an upgrade, pages open with what a node of the release before answers, which counts no failed schedules', async () => {
  const page = await console.open(console.owner, '/keys');
  const answers: unknown[] = [];
  await page.route(/\/api\/v1\/overview/, async (route) => {
    const response = await route.fetch();
    const { overview } = (await response.json()) as { overview: { schedules?: unknown } };
    delete overview.schedules;
    answers.push(overview);
    await route.fulfill({ response, json: { overview } });
  });
  await page.reload();
  await page.getByRole('heading', { name: 'API keys' }).waitFor();
  await expect.poll(() => answers.length).toBe(1);
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
});
