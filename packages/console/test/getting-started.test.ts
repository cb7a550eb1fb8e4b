// "Getting started" in the navigation, also of people who began with a program, until they dismiss it.
import { beforeAll, expect, test } from 'vitest';
import { firstMessage, refundDesk } from '../src/pages/start/refund-desk.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
let member: Person;

beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member');
});

test('someone who began with a program finds the guide, and steps check themselves off as they are done', async () => {
  const { client } = console.service;
  const agent = await client.agents.create({ ...refundDesk, name: 'Of a program', metadata: {} });
  const page = await console.open(console.owner, '/sessions');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Getting started' }).click();
  const step = (name: string) =>
    page
      .getByRole('listitem')
      .filter({ has: page.getByRole('heading', { name }) })
      .getByText('done', { exact: true });
  await step('Create an agent').waitFor();
  expect(await step('Run the agent and approve the call').count()).toBe(0);
  expect(await step('Receive webhooks').count()).toBe(0);
  // The guide can't run that agent. What is done asks for nothing, and the step that is next offers what it needs.
  const body = (name: string) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name }) });
  const create = { name: 'Create the refund desk' };
  await body('Create an agent').getByText('The organization has an agent.').waitFor();
  expect(await body('Create an agent').getByRole('button').count()).toBe(0);
  const inStep = body('Run the agent and approve the call').getByRole('button', create);
  expect(await inStep.getAttribute('class')).toContain('primary');

  // Done elsewhere, while the page is open.
  const { sessionId } = await client.sessions.open({
    agentId: agent.agentId,
    environment: 'production',
    input: firstMessage,
  });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    const asked = chunks.find((chunk) => chunk.type === 'approval.requested');
    if (!asked) continue;
    await client.approvals.approve(asked.operationId);
    break;
  }
  await step('Run the agent and approve the call').waitFor();
  await page.getByText('A call was approved.').waitFor();
  expect(await inStep.getAttribute('class')).not.toContain('primary');
  await client.webhookSubscriptions.create({ environment: 'production', url: 'signalbox:test-receiver' });
  // It is sent: the session's last chunk.
  await client.sessions.cancel(sessionId);
  await step('Receive webhooks').waitFor();
  await page.getByRole('heading', { name: /^All steps are done/ }).waitFor();

  // From now on an event about agents asks for the agents, but not whether there is one.
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await client.agents.create({ name: 'Another', model: 'scripted/x' });
  await expect.poll(() => asked.filter((url) => /\/agents\?.*limit=100$/.test(url)).length).toBeGreaterThan(0);
  expect(asked.filter((url) => /\/agents\?limit=1$/.test(url))).toEqual([]);
});

test('dismissing it removes it for that person only, until the person wants it back', async () => {
  const page = await console.open(console.owner, '/start');
  const entry = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Getting started' });
  await entry.waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await entry.waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('button', { name: 'Keep in the navigation' }).waitFor();
  expect(await entry.count()).toBe(0);

  // The next person in the same browser.
  const [name = '', value = ''] = member.cookie.split(/=(.*)/s);
  await page.context().clearCookies();
  await page.context().addCookies([{ name, value, url: console.origin }]);
  await page.reload();
  await entry.waitFor();

  const [owners = '', secret = ''] = console.owner.cookie.split(/=(.*)/s);
  await page.context().clearCookies();
  await page.context().addCookies([{ name: owners, value: secret, url: console.origin }]);
  await page.goto(`${console.origin}/console/${console.organizationId}/agents`);
  await page.getByRole('heading', { name: 'Agents' }).waitFor();
  expect(await entry.count()).toBe(0);
  await page.getByRole('button', { name: /Olga Owner/ }).click();
  await page.getByRole('menuitem', { name: 'Getting started' }).click();
  await page.getByRole('heading', { name: 'Getting started', level: 1 }).waitFor();
  await entry.waitFor();
});

test('the bar above a page links to the call that a program would make, or to the whole reference', async () => {
  const page = await console.open(member, '/agents');
  const link = page.getByRole('banner').getByRole('link', { name: 'API reference' });
  await expect.poll(() => link.getAttribute('href')).toBe('/docs#createAgent');
  const opened = page.context().waitForEvent('page');
  await link.click();
  const reference = await opened;
  await reference.getByRole('heading', { name: 'Create an agent' }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).click();
  await expect.poll(() => link.getAttribute('href')).toBe('/docs');
});

test('a viewer, who cannot follow the steps, has no entry for them', async () => {
  const viewer = await console.person('viewer');
  const page = await console.open(viewer);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(await page.getByRole('link', { name: 'Getting started' }).count()).toBe(0);
});

test('while it can’t be read what is done, no step is said to be next and none is counted', async () => {
  const page = await console.open(member, '/agents');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await page.route(/\/api\/v1\/(agents|approvals|webhook-subscriptions)/, (route) =>
    route.fulfill({
      status: 500,
      contentType: 'application/problem+json',
      body: JSON.stringify({ code: 'internal_error', detail: 'An internal error occurred' }),
    }),
  );
  await page.goto(`${console.origin}/console/${console.organizationId}/start`);
  await page.getByRole('alert').first().waitFor();
  expect(await page.getByText(/steps done/).count()).toBe(0);
  expect(await page.getByRole('img', { name: /steps done/ }).count()).toBe(0);
  expect(await page.locator('[aria-current="step"]').count()).toBe(0);
});
