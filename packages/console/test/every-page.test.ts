// Requirements for every page: it fits from a phone to a desktop, in light and dark, is accessible, and nothing in it violates the
// policy or throws (support/console.ts watches).
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test, vi } from 'vitest';
import { firstMessage, refundDesk } from '../src/pages/start/refund-desk.ts';
import { bothSchemes, expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';
import { problemsOfStops } from './support/keyboard.ts';
import { partsOf, problemsOfReading } from './support/screen-reader.ts';

let console: TestConsole;
let viewer: Person;
/** Paths below the organization's, with the heading of the page. */
let pages: [route: string, path: string, heading: string | RegExp][];

beforeAll(async () => {
  console = await startConsole();
  viewer = await console.person('viewer');
  const { client } = console.service;
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'signalbox:test-receiver' });
  const agent = await client.agents.create(refundDesk);
  await client.agents.update(agent.agentId, { description: 'Gives money back.' });
  const session = await client.sessions.open({
    agentId: agent.agentId,
    environment: 'staging',
    input: firstMessage,
    closeOnIdle: true,
  });
  for await (const { chunks } of client.sessions.stream(session.sessionId)) {
    if (chunks.some(({ type }) => type === 'approval.requested')) break;
  }
  const fork = await client.sessions.fork(session.sessionId, { atTurn: 0, input: firstMessage });
  const [approval] = (await client.approvals.list({ sessionId: session.sessionId })).data;
  const schedule = await client.schedules.create({
    agentId: agent.agentId,
    environment: 'staging',
    input: firstMessage,
    cron: '0 9 * * 1-5',
    timezone: 'America/Argentina/ComodRivadavia',
  });
  const { deliveries } = client.webhookSubscriptions;
  const delivery = await vi.waitUntil(async () => (await deliveries.list('staging')).data[0], { timeout: 30_000 });
  pages = [
    ['/', '', 'Overview'],
    ['/start', '/start', 'Getting started'],
    ['/approvals', '/approvals', 'Approvals'],
    ['/approvals/$operationId', `/approvals/${approval!.operationId}`, 'Refund order'],
    ['/sessions', '/sessions', 'Sessions'],
    ['/sessions/$sessionId', `/sessions/${session.sessionId}`, /Refund desk/],
    ['/sessions/$sessionId/compare', `/sessions/${fork.sessionId}/compare`, 'Compare sessions'],
    ['/agents', '/agents', 'Agents'],
    ['/agents/new', '/agents/new', /./],
    ['/agents/$agentId', `/agents/${agent.agentId}`, 'Refund desk'],
    ['/agents/$agentId/versions', `/agents/${agent.agentId}/versions`, /Refund desk/],
    ['/playground', '/playground', 'Playground'],
    ['/schedules', '/schedules', 'Schedules'],
    ['/schedules/$scheduleId', `/schedules/${schedule.scheduleId}`, /Refund desk/],
    ['/usage', '/usage', 'Usage'],
    ['/budgets', '/budgets', 'Budgets'],
    ['/webhooks', '/webhooks', 'Webhooks'],
    ['/webhooks/$environment', '/webhooks/staging', /staging/],
    ['/webhooks/$environment/deliveries/$deliveryId', `/webhooks/staging/deliveries/${delivery.deliveryId}`, /./],
    ['/environments', '/environments', 'Environments'],
    ['/environments/$name', '/environments/staging', 'staging'],
    ['/keys', '/keys', 'API keys'],
    ['/events', '/events', 'Event log'],
    ['/people', '/people', 'People'],
    ['/organization', '/organization', 'Organization'],
    ['/account', '/account', 'Your account'],
  ];
});

test('every page of an organization is in this list', () => {
  const source = readFileSync(new URL('../src/router.tsx', import.meta.url), 'utf8');
  const routes = [...source.matchAll(/\.\.\.inOrganization,\s+path: '([^']+)'/g)].map(([, path]) => path!);
  expect(routes.toSorted()).toEqual(pages.map(([route]) => route).toSorted());
});

test('every page has a title and one heading, fits 360 to 1440 px, passes axe in light and dark, and can be used by keys', async () => {
  const page = await console.open(console.owner);
  for (const [, path, heading] of pages) {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    const title = page.getByRole('heading', { level: 1, name: heading });
    await title.waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
    expect(await page.getByRole('heading', { level: 1 }).count(), path).toBe(1);
    expect(await page.title(), path).toContain(`${(await title.textContent())!.trim()} · Signalbox`);
    expect(await problemsOfReading(page), path).toEqual([]);
    for (const width of [360, 768, 1024, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth),
        `${path} at ${width}`,
      ).toBeLessThanOrEqual(width);
      // What a person recognizes a row by keeps its room, once the columns are chosen for the width.
      const narrowest = () =>
        page
          .locator('table.table')
          .evaluateAll((tables) =>
            Math.min(
              120,
              ...tables.flatMap((table) =>
                [...table.querySelectorAll('td[data-phone=title]')].map((cell) => cell.clientWidth),
              ),
            ),
          );
      await expect.poll(narrowest, { message: `${path} at ${width}` }).toBe(120);
      // The colors are the same at every width.
      if (width === 360) await expectAccessible(page);
      if (width === 1440) await expectAccessible(page, 'html', bothSchemes);
    }
    // The stops of the frame, which are before the heading and the same on every page, once.
    if (path !== '') await title.focus();
    expect(await problemsOfStops(page, path === '' ? 60 : 40), path).toEqual([]);
  }
}, 300_000);

/** What a screen reader can jump to on the pages that people open most. There may be more. */
const parts: Record<string, string[]> = {
  '/': [
    'radiogroup "Range"',
    'region "Figures"',
    'heading "Sessions"',
    'heading "First token"',
    'heading "Error rate"',
    'heading "Cost"',
    'region "Needs you"',
    'region "Needs attention"',
    'region "Latest events"',
  ],
  '/approvals': ['navigation "Status"', 'heading "Refund order"', 'article "Refund order"'],
  '/sessions': [
    'navigation "Views"',
    'searchbox "Search messages, end users, metadata, ids"',
    'table "Sessions, newest first"',
    'columnheader "Session"',
    'columnheader "Status"',
    'columnheader "Opened"',
  ],
  '/sessions/$sessionId': [
    'tab "Conversation"',
    'tab "Trace"',
    'region "Conversation"',
    'heading "Messages"',
    'heading "Refund order"',
    'textbox "Message"',
    'region "Trace"',
    'treegrid "Turns and their calls"',
  ],
  '/agents': [
    'navigation "Agents by status"',
    'searchbox "Search names, models, tools, ids"',
    'table "Agents"',
    'columnheader "Agent"',
    'columnheader "Model"',
  ],
};

test('a screen reader finds the parts of the main pages by name, in the order of the questions that they answer', async () => {
  const page = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  for (const [route, path] of pages) {
    const expected = parts[route];
    if (!expected) continue;
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    const found = async () => [...new Set(await partsOf(page))].filter((part) => expected.includes(part));
    await expect.poll(found, { message: path, timeout: 30_000 }).toEqual(expected);
  }
}, 120_000);

test('a viewer sees every page or the reason why not, and no page makes a request that is refused', async () => {
  const page = await console.open(viewer);
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
  });
  for (const [, path] of pages) {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
    expect(await page.getByRole('alert').count(), path).toBe(0);
  }
  expect(refused).toEqual([]);
}, 120_000);

test('pages open in any order and can use each other’s cached data', async () => {
  const page = await console.open(console.owner);
  const places = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  await places.first().waitFor();
  const count = await places.count();
  const there = Array.from({ length: count }, (_, index) => index);
  for (const index of [...there, ...there.toReversed()]) {
    const name = (await places.nth(index).textContent())!.replace(/\d.*/, '').trim();
    await places.nth(index).click();
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
  }
}, 120_000);

test('with the longest names, every page fits 360 to 1440 px, and a row keeps its height and its title', async () => {
  const { client } = console.service;
  const tool = 'refund_the_whole_order_and_notify_everybody_in_the_company_now';
  const script = [{ toolCalls: [{ name: tool, input: { order: 'x'.repeat(300) } }] }, { text: 'Done' }];
  const agent = await client.agents.create({
    name: 'W'.repeat(100),
    description: 'A description without an end. '.repeat(12),
    instructions: 'Refund.',
    model: { provider: 'scripted', model: 'demo', settings: { script } },
    tools: [
      { type: 'client', name: tool, description: 'Refunds.', inputSchema: { type: 'object' }, approval: 'always' },
    ],
  });
  const environment = 'e'.repeat(63);
  await client.environments.create({ name: environment });
  await client.webhookSubscriptions.create({ environment, url: `https://hooks.example.com/${'path/'.repeat(100)}` });
  await client.budgets.set('b'.repeat(63), { limitUsd: 0.01, period: 'month', environment });
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  await client.keys.create({ name: 'K'.repeat(100), permission: 'admin', expiresAt: inDays(2) });
  await client.schedules.create({
    agentId: agent.agentId,
    environment,
    name: 'Name of a schedule '.repeat(5).trim(),
    input: 'Report. '.repeat(100),
    cron: '1,2,3,5,8,13,21,34,55 0-23/2 1-15 1,3,5 1-5',
    timezone: 'America/Argentina/ComodRivadavia',
  });
  let sessionId = '';
  for (const end of ['a', 'b']) {
    ({ sessionId } = await client.sessions.open({
      agentId: agent.agentId,
      environment,
      input: `${'ההזמנה שלי הגיעה שבורה '.repeat(20)}${end}`,
      endUser: { id: `${'z'.repeat(120)}${end}`, name: 'Maximiliane Freifrau von und zu '.repeat(3) },
    }));
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      if (chunks.some(({ type }) => type === 'approval.requested')) break;
    }
  }
  const page = await console.open(console.owner);
  for (const [path, row] of [
    ['/approvals', '.approval-group header'],
    ['/sessions', 'tbody tr'],
    ['/agents', 'tbody tr'],
    ['/schedules', 'tbody tr'],
    ['/budgets', 'tbody tr'],
    ['/webhooks', 'tbody tr'],
    ['/environments', 'tbody tr'],
    ['/keys', 'tbody tr'],
    ['/people', 'tbody tr'],
    ['/events', 'tbody tr'],
  ] as const) {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await page.locator(row).first().waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
    for (const width of [360, 768, 1024, 1100, 1280, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const place = `${path} at ${width}`;
      expect(await page.evaluate(() => document.documentElement.scrollWidth), place).toBeLessThanOrEqual(width);
      const rows = () =>
        page.locator(row).evaluateAll((all) =>
          all.map((one) => {
            const title = one.querySelector('h2, td[data-phone=title]');
            return { height: one.clientHeight, title: title?.clientWidth ?? 0, words: title?.scrollWidth ?? 100 };
          }),
        );
      // A line each, and two on the phone.
      expect(Math.max(...(await rows()).map(({ height }) => height)), place).toBeLessThanOrEqual(
        width === 360 ? 100 : 45,
      );
      // Other columns give way to the one by which a person recognizes the row.
      const least = width < 1024 ? 100 : 170;
      const cut = async () => (await rows()).filter(({ title, words }) => title < Math.min(least, words));
      await expect.poll(cut, { message: place }).toEqual([]);
    }
  }
  for (const path of [
    '',
    `/sessions/${sessionId}`,
    `/sessions/${sessionId}?tab=trace`,
    `/agents/${agent.agentId}`,
    `/webhooks/${environment}`,
    `/environments/${environment}`,
  ]) {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expect.poll(() => page.locator('.bone').count(), { timeout: 30_000 }).toBe(0);
    for (const width of [360, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const whole = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(whole, `${path} at ${width}`).toBeLessThanOrEqual(width);
    }
  }
}, 120_000);
