// The command palette and the keyboard shortcuts, in a real browser on a real service.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
let viewer: Person;
let agentId: string;
let sessionId: string;
beforeAll(async () => {
  console = await startConsole();
  viewer = await console.person('viewer', 'Vito Viewer');
  const { client } = console.service;
  ({ agentId } = await client.agents.create({ name: 'Refund desk', model: 'scripted/x' }));
  for (let n = 0; n < 30; n += 1) await client.agents.create({ name: `Helper ${n}`, model: 'scripted/x' });
  await client.keys.create({ name: 'Backend of the shop', permission: 'write' });
  await client.schedules.create({ agentId, environment: 'staging', cron: '0 9 * * *' });
  ({ sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    endUser: { id: 'cus_1181', name: 'Nia' },
    metadata: { ticket: 'T-204' },
  }));
});

const pathOf = (page: Page) => new URL(page.url()).pathname.replace(`/console/${console.organizationId}`, '');
const box = (page: Page) => page.getByRole('combobox', { name: 'Search and commands' });
/** The option that Enter would choose, as a screen reader finds it. */
async function chosen(page: Page): Promise<string> {
  return await box(page).evaluate((input) => {
    const id = input.getAttribute('aria-activedescendant');
    return (id && document.getElementById(id)?.textContent) || '';
  });
}

test('everything is found by a few letters, with the keyboard alone, and a pasted id goes to its page', async () => {
  const page = await console.open(console.owner, '/usage', { viewport: { width: 1440, height: 900 } });
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  const go = async (text: string, label: RegExp, path: string) => {
    await page.keyboard.press('Control+k');
    await box(page).waitFor();
    await page.keyboard.type(text);
    await expect.poll(() => chosen(page)).toMatch(label);
    await page.keyboard.press('Enter');
    await expect.poll(() => pathOf(page)).toBe(path);
    expect(await box(page).count()).toBe(0);
  };
  await go('refu', /Refund desk/, `/agents/${agentId}`);
  await go('event', /Event log/, '/events');
  await go('backend', /Backend of the shop/, '/keys');
  await go('cus_1181', /Refund desk.*Nia/, `/sessions/${sessionId}`);
  await go('ticket=T-204', /Refund desk/, `/sessions/${sessionId}`);
  await go('new agent', /New agent/, '/agents/new');

  // The reference of every operation, below what the console itself does.
  await page.keyboard.press('Control+k');
  await page.keyboard.type('create key');
  await expect.poll(() => chosen(page)).toMatch(/^Create key/);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('rotate the signing');
  await expect.poll(() => chosen(page)).toMatch(/^Rotate the signing secret/);
  const [reference] = await Promise.all([page.context().waitForEvent('page'), page.keyboard.press('Enter')]);
  await expect.poll(() => reference.url()).toMatch(/\/docs#/);
  await reference.close();
  await go(`  ${agentId} `, /^Agent/, `/agents/${agentId}`);
  await page.getByRole('heading', { name: 'Refund desk', level: 1 }).waitFor();

  // The arrows go round, and the page's own keys do nothing meanwhile.
  await page.keyboard.press('Control+k');
  const first = await chosen(page);
  await page.keyboard.press('ArrowUp');
  expect(await chosen(page)).not.toBe(first);
  await page.keyboard.press('ArrowDown');
  expect(await chosen(page)).toBe(first);
  await expectAccessible(page);
  await page.keyboard.type('zzzzqqq');
  await page.getByText('Nothing found for “zzzzqqq”.').waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  expect(await box(page).count()).toBe(0);

  // An action; the pages that were opened last come first.
  await page.keyboard.press('Control+k');
  await page.keyboard.type('dark');
  await expect.poll(() => chosen(page)).toMatch(/Switch to dark/);
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
  await expect
    .poll(async () => {
      await page.keyboard.press('Control+k');
      const text = await chosen(page);
      await page.keyboard.press('Escape');
      return text;
    })
    .toMatch(/Refund desk.*Agents/);
  await go('staging secrets', /^staging/, '/environments/staging');
  // Its page says what is in it; the other pages still show all.
  expect(new URL(page.url()).searchParams.get('environment')).toBe(null);
});

test('requests follow a pause and are cancelled by the next letter, and a search that fails stops nothing', async () => {
  const page = await console.open(console.owner, '/usage');
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  const asked: string[] = [];
  await page.route('**/api/v1/sessions?**', async (route) => {
    asked.push(route.request().url());
    await route.abort();
  });
  await page.keyboard.press('Control+k');
  await box(page).waitFor();
  await page.keyboard.type('refund desk');
  await expect.poll(() => chosen(page)).toMatch(/Refund desk/);
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  expect(asked.length).toBeLessThan(6);
  await page.keyboard.press('Enter');
  await expect.poll(() => pathOf(page)).toBe(`/agents/${agentId}`);
});

test('g and a letter go to a page, ? lists the keys of the page, / searches, and none of them works in a field', async () => {
  const page = await console.open(console.owner, '/usage', { viewport: { width: 1440, height: 900 } });
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await sheet.getByRole('heading', { name: 'Approvals' }).waitFor();
  await sheet.getByText('Next approval').waitFor();
  await sheet.getByText('Search and run commands').waitFor();
  await expectAccessible(page);
  // A dialog is open: the page behind it has no keys.
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  expect(pathOf(page)).toBe('/approvals');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('l');
  await page.getByRole('heading', { name: 'Event log', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await sheet.getByText('Search and run commands').waitFor();
  expect(await sheet.getByText('Next approval').count()).toBe(0);
  await page.keyboard.press('Escape');

  await page.goto(`${console.origin}/console/${console.organizationId}/agents/new`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.keyboard.press('/');
  await box(page).waitFor();
  await page.keyboard.type('g s?/');
  expect(await box(page).inputValue()).toBe('g s?/');
  await page.keyboard.press('Escape');
  expect(pathOf(page)).toBe('/agents/new');

  // Switched off, only the keys with Ctrl work.
  await page.keyboard.press('?');
  await page.getByLabel('Enable keyboard shortcuts').uncheck();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.keyboard.press('Control+k');
  await box(page).waitFor();
  expect(await sheet.count()).toBe(0);
});

test('the palette offers nobody what their role can’t do, and fits a phone', async () => {
  const page = await console.open(viewer, '/usage', {
    viewport: { width: 360, height: 740 },
    hasTouch: true,
    isMobile: true,
  });
  await page.getByRole('button', { name: 'Search and commands' }).tap();
  await box(page).fill('create key');
  await page.getByRole('option', { name: /^Create an API key/ }).waitFor();
  expect(await page.getByRole('option', { name: /^Create key/ }).count()).toBe(0);
  await box(page).fill('key');
  expect(await page.getByRole('option', { name: /^API keys( G K)?$|Backend/ }).count()).toBe(0);
  await box(page).fill('sess');
  await page.getByRole('option', { name: 'Sessions' }).first().waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await expectAccessible(page);
  await page.getByRole('option', { name: 'Sessions' }).first().tap();
  await expect.poll(() => pathOf(page)).toBe('/sessions');
});
