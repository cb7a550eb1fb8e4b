// The event log in the browser: reading, exporting and verifying it.
import { readFile } from 'node:fs/promises';
import type { Event } from '@signalbox/client';
import type { Download, Page } from 'playwright-core';
import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

const MANY = 10_000;

let console: TestConsole;
let uuid: string;

beforeAll(async () => {
  console = await startConsole();
  const [row] = await console.service.db.query<{ id: string }>(
    sql`select organization_id::text as id from organizations`,
  );
  uuid = row!.id;
});

const records = (page: Page) => page.getByRole('table', { name: 'Events, newest first' }).locator('tr[data-item]');

/** Sets a filter that has values to choose from. */
async function choose(page: Page, filter: string, value: string): Promise<void> {
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: filter, exact: true }).click();
  await page.getByRole('button', { name: value, exact: true }).click();
}

/** Creates an environment, which writes an event. */
async function createEvent(name: string): Promise<void> {
  await console.service.client.environments.create({ name });
}

/** Inserts events as requests do; the sequencer numbers them when the log is read. */
async function insertEvents(count: number): Promise<void> {
  const body = {
    type: 'agent.updated',
    outcome: 'success',
    actor: { type: 'system', id: null, name: 'Signalbox' },
    resource: { type: 'agent', id: 'agt_many' },
    environment: null,
    sessionId: null,
    changes: null,
    context: { requestId: null, ipAddress: null, userAgent: null },
  };
  await console.service.db.query(sql`
    insert into events_pending (organization_id, event_id, body, occurred_at)
    select ${uuid}::uuid, gen_random_uuid(), ${JSON.stringify(body)}::jsonb, now() from generate_series(1, ${count}::int)`);
  await console.service.client.events.list({ limit: 1 });
}

async function textOf(download: Download): Promise<string> {
  return await readFile((await download.path())!, 'utf8');
}

test('the filters are in the URL, so a reload or a shared link shows the same', async () => {
  await createEvent('first-place');
  const page = await console.open(console.owner, '/events');
  const log = page.getByRole('region', { name: 'Events' });
  await log.getByText('first-place').first().waitFor();
  await log.getByText('api_key.created').waitFor();
  await choose(page, 'Type', 'Environment created');
  await log.getByText('api_key.created').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Time range: any time' }).click();
  await page.getByLabel('From').fill('2020-01-01T00:00:00');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: 'Session', exact: true }).click();
  await page.getByLabel('Session', { exact: true }).fill('nonsense');
  await page.keyboard.press('Enter');
  await page.getByText('Enter the whole id of a session.').waitFor();
  await page.reload();
  await log.getByText('first-place').first().waitFor();
  expect(await log.getByText('api_key.created').count()).toBe(0);
  await page.getByRole('button', { name: 'Time range: Since Jan 1, 2020' }).waitFor();
  await page.getByRole('button', { name: 'Remove the filter Type' }).click();
  await log.getByText('api_key.created').waitFor();
  // A link of an earlier release.
  await page.goto(`${console.origin}/console/${console.organizationId}/events?until=2020-01-01T00:00:00.000Z`);
  await page.getByText('No matching events').waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await log.getByText('api_key.created').first().waitFor();
  expect(new URL(page.url()).search).toBe('');
});

test('the filter of an agent takes its id, shows what is about it, and is reached from an event', async () => {
  const { client } = console.service;
  const [one, other] = [
    await client.agents.create({ name: 'Filtered one', model: 'scripted/x' }),
    await client.agents.create({ name: 'Other one', model: 'scripted/x' }),
  ];
  await client.agents.update(one.agentId, { name: 'Filtered agent' });
  const page = await console.open(console.owner, '/events');
  await records(page).filter({ hasText: 'Other one' }).first().waitFor();
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: 'Agent', exact: true }).click();
  await page.getByLabel('Agent', { exact: true }).fill('Filtered agent');
  await page.keyboard.press('Enter');
  await page.getByText('Enter the whole id of an agent.').waitFor();
  await page.getByLabel('Agent', { exact: true }).fill(one.agentId);
  await page.keyboard.press('Enter');
  await expect.poll(() => records(page).count()).toBe(2);
  expect(new URL(page.url()).searchParams.get('agentId')).toBe(one.agentId);
  await expectAccessible(page);
  await page.goto(page.url().replace(one.agentId, other.agentId));
  await expect.poll(() => records(page).count()).toBe(1);
  await page.goto(page.url().replace(/\?.*/, ''));
  await records(page).filter({ hasText: 'Filtered agent' }).first().click();
  await page.getByRole('link', { name: 'all events about this agent' }).click();
  await expect.poll(() => records(page).count()).toBe(2);
});

test('a view shows the events of its kind, old and new', async () => {
  await console.service.client.keys.create({ name: 'viewed', permission: 'read' });
  const page = await console.open(console.owner, '/events');
  await records(page).getByText('environment.created').first().waitFor();
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Access' }).click();
  await records(page).getByText('environment.created').first().waitFor({ state: 'detached' });
  await records(page).getByText('viewed').first().waitFor();
  await createEvent('of-another-kind');
  await console.service.client.keys.create({ name: 'viewed-later', permission: 'read' });
  await records(page).first().getByText('viewed-later').waitFor();
  expect(await records(page).getByText('of-another-kind').count()).toBe(0);
});

test('an event opens in full with the keyboard, and user input in it is shown as text', async () => {
  const name = `<img src=x onerror="document.title='taken'">`;
  await console.service.client.keys.create({ name, permission: 'read' });
  const page = await console.open(console.owner, '/events');
  const link = page.getByRole('link', { name }).first();
  await link.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: /^Event \d/ });
  await dialog.getByRole('cell', { name, exact: true }).waitFor();
  await dialog.getByRole('cell', { name: 'read', exact: true }).waitFor();
  await dialog.getByText('Hash and raw event').click();
  const [{ hash } = { hash: '' }] = (await console.service.client.events.list({ type: 'api_key.created' })).data;
  await dialog.getByText(hash, { exact: true }).waitFor();
  await expectAccessible(page);
  await page.setViewportSize({ width: 360, height: 800 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  const shown = page.url();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await link.and(page.locator(':focus')).waitFor();
  // j and k go through the rows.
  await page.keyboard.press('j');
  await records(page).nth(1).getByRole('link').and(page.locator(':focus')).waitFor();
  await page.keyboard.press('k');
  await link.and(page.locator(':focus')).waitFor();
  // Another event can be opened from the list while one is open. The focus stays in the list when it closes.
  await page.keyboard.press('Enter');
  await dialog.waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).not.toBe(shown);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await records(page).nth(1).getByRole('link').and(page.locator(':focus')).waitFor();
  expect(await page.title()).toBe('Event log · Signalbox');
  await page.goto(shown);
  await dialog.getByRole('cell', { name, exact: true }).waitFor();
});

test('new events appear at the top automatically, but not while the user is scrolled down', async () => {
  await insertEvents(150);
  const page = await console.open(console.owner, '/events');
  await records(page).first().waitFor();
  await createEvent('at-the-top');
  await records(page).first().getByText('at-the-top').first().waitFor();

  await page.mouse.wheel(0, 2_000);
  await expect.poll(() => page.evaluate('scrollY')).toBeGreaterThan(1_000);
  await createEvent('while-reading');
  const news = page.getByRole('button', { name: '1 new' });
  await news.waitFor();
  expect(await records(page).getByText('while-reading').count()).toBe(0);
  await createEvent('one-more');
  await page.getByRole('button', { name: '2 new' }).click();
  await records(page).first().getByText('one-more').first().waitFor();
  expect(await page.evaluate('scrollY')).toBe(0);
  // A filter also applies to new events.
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Newcomer', model: 'scripted/x' });
  await choose(page, 'Type', 'Agent archived');
  await page.getByText('No matching events').waitFor();
  await createEvent('not-shown');
  await client.agents.archive(agentId);
  await records(page).first().getByText('Newcomer').waitFor();
  expect(await records(page).count()).toBe(1);
});

test('a long log can be scrolled to its start while only visible rows are in the page', async () => {
  await insertEvents(MANY);
  const page = await console.open(console.owner, '/events');
  // As in a busy browser, which reports that the end came into sight together with that it was not.
  await page.addInitScript(`
    const Observer = IntersectionObserver;
    IntersectionObserver = class extends Observer {
      constructor(callback, options) {
        super((entries, observer) => callback([{ isIntersecting: false }, ...entries], observer), options);
      }
    };
  `);
  await page.reload();
  await records(page).first().waitFor();
  let most = 0;
  // The row of the header is the first.
  const [{ sequence } = { sequence: 0 }] = (await console.service.client.events.list({ limit: 1 })).data;
  const start = page.locator(`tr[aria-rowindex="${sequence + 1}"]`);
  while (!(await start.isVisible())) {
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    most = Math.max(most, await records(page).count());
  }
  expect(most).toBeLessThan(60);
  await expectAccessible(page);
}, 60_000);

test('a page of the log that failed is requested again only when the user asks for it', async () => {
  const page = await console.open(console.owner, '/events');
  await records(page).first().waitFor();
  let asked = 0;
  await page.route(/\/events\?limit=\d+&cursor=/, async (route) => {
    asked++;
    // The client does not retry this one by itself.
    await route.fulfill({ status: 400 });
  });
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  await page.getByRole('alert').waitFor();
  const before = asked;
  // The end of the list stays in sight while other requests come and go.
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  await createEvent('after-a-failure');
  await page.getByRole('button', { name: '1 new' }).waitFor();
  expect(asked).toBe(before);
  await page.unroute(/\/events\?limit=\d+&cursor=/);
  const count = () => page.getByRole('table', { name: 'Events, newest first' }).getAttribute('aria-rowcount');
  const shown = Number(await count());
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(async () => Number(await count())).toBeGreaterThan(shown);
  await page.getByRole('alert').waitFor({ state: 'detached' });
});

test('an export is the API’s file, complete or filtered', async () => {
  const page = await console.open(console.owner, '/events?type=environment.created');
  const exported = async (name: string) => {
    await page.getByRole('button', { name: 'Export' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name }).click()]);
    return { name: download.suggestedFilename(), text: await textOf(download) };
  };
  const lines = await exported('JSON Lines');
  const expected: Event[] = [];
  for await (const event of console.service.client.events.export({ type: 'environment.created' })) expected.push(event);
  expect(lines.name).toBe('events.jsonl');
  expect(
    lines.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(expected);
  await page.getByRole('button', { name: 'Remove the filter Type' }).click();
  const csv = await exported('CSV');
  const direct = await console.service.client.events.download({ format: 'csv' });
  expect(csv).toEqual({ name: 'events.csv', text: await new Response(direct).text() });
});

test('the browser verifies the hash chain and names an event that was tampered with', async () => {
  const page = await console.open(console.owner, '/events');
  await page.getByRole('button', { name: 'Verify event log' }).click();
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  await page.getByText('The event log is intact').waitFor();
  await expectAccessible(page);
  const [{ sequence } = { sequence: 0 }] = (await console.service.client.events.list({ type: 'environment.created' }))
    .data;
  const tamper = (name: string) =>
    console.service.db.query(sql`
    update events set body = jsonb_set(body, '{actor,name}', to_jsonb(${name}::text))
    where organization_id = ${uuid}::uuid and sequence = ${sequence}`);
  await tamper('Mallory Forger');
  await page.getByRole('button', { name: 'Verify again' }).click();
  await page.getByText(`The event log is not intact at event ${sequence.toLocaleString('en')}`).waitFor();
  await page.getByText('its hash does not match its content').waitFor();
  await page.getByRole('link', { name: 'Show the event' }).click();
  await page
    .getByRole('dialog', { name: `Event ${sequence}` })
    .getByText('Mallory Forger')
    .first()
    .waitFor();
  await tamper('Test');
});

test('a rebuilt log fails against the checkpoint that this browser verified before', async () => {
  const page = await console.open(console.owner, '/events');
  const keep = (hash: string) =>
    page.evaluate(
      `localStorage.setItem('signalbox.verified.${console.organizationId}', '{"sequence":2,"hash":"${hash}"}')`,
    );
  await keep('ab'.repeat(32));
  await page.getByRole('button', { name: 'Verify event log' }).click();
  await page.getByText('verified the log up to event 2').waitFor();
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  await page.getByText('The event log is not intact at event 2').waitFor();
});

test('if the browser can’t compute hashes, the page says why and what to use instead', async () => {
  const page = await console.open(console.owner, '/account');
  await page.context().addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })");
  await page.goto(`${console.origin}/console/${console.organizationId}/events`);
  await page.getByRole('button', { name: 'Verify event log' }).click();
  await page.getByText('opened over http').waitFor();
  await page.getByText('signalbox events verify').waitFor();
  expect(await page.getByRole('button', { name: 'Verify', exact: true }).count()).toBe(0);
});

test('a viewer can read, export and verify the log', async () => {
  const viewer = await console.person('viewer');
  const page = await console.open(viewer, '/events');
  await records(page).first().waitFor();
  await page.getByRole('button', { name: 'Export' }).click();
  await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'CSV' }).click()]);
});

test('a row says which agent was changed and how, and on a phone a failure leaves room for what failed', async () => {
  const { client } = console.service;
  const script = [{ failWith: 'rejected' as const }];
  const model = { provider: 'scripted' as const, model: 'demo', settings: { script } };
  const { agentId, version } = await client.agents.create({ name: 'Fails', model });
  await client.agents.update(agentId, { expectedVersion: version, instructions: 'Fail.' });
  const page = await console.open(console.owner, '/events', { viewport: { width: 390, height: 800 } });
  await records(page).getByText('Fails, instructions').waitFor();
  await client.sessions.open({ agentId, environment: 'staging', input: 'Fail' });
  const title = records(page).getByText('A turn failed').locator('xpath=ancestor-or-self::strong').first();
  await title.waitFor();
  expect(await title.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBeLessThanOrEqual(0);
});
