// Every flow of the console without a mouse: in a real browser on a real service, by keys only.
import type { Locator, Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { startConsole, type TestConsole } from './support/console.ts';
import { expectTrapped, hasFocus, tabTo } from './support/keyboard.ts';

let console: TestConsole;
let agentId: string;
let sessionId: string;
beforeAll(async () => {
  console = await startConsole();
  const { client } = console.service;
  const refund = { name: 'refund_order', input: { order: '1042', cents: 100 } };
  ({ agentId } = await client.agents.create({
    name: 'Refund desk',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ toolCalls: [refund] }, { text: 'Done.' }] } },
    tools: [
      {
        type: 'client',
        name: 'refund_order',
        description: 'Pays.',
        inputSchema: { type: 'object' },
        approval: 'always',
      },
    ],
  }));
  ({ sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'The glass is broken.' }));
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'signalbox:test-receiver' });
  await client.schedules.create({ agentId, environment: 'staging', cron: '0 9 * * *', name: 'Every morning' });
  await client.keys.create({ name: 'Backend', permission: 'read' });
  await vi.waitUntil(async () => (await client.sessions.get(sessionId)).status === 'waiting', { timeout: 30_000 });
});

const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { name, level: 1 });

async function go(page: Page, letter: string, title: string): Promise<void> {
  await page.keyboard.press('g');
  await page.keyboard.press(letter);
  await heading(page, title).waitFor();
}

async function press(target: Locator): Promise<void> {
  await tabTo(target);
  await target.page().keyboard.press('Enter');
}

test('by keys alone one signs in, creates a key and an agent, opens a session, approves a call, and filters sessions', async () => {
  const page = await newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${console.origin}/console`);
  await heading(page, 'Sign in').waitFor();
  await tabTo(page.getByLabel('Email'));
  await page.keyboard.type(console.owner.email);
  await tabTo(page.getByLabel('Password'));
  await page.keyboard.type(console.owner.password);
  await page.keyboard.press('Enter');
  await heading(page, 'Overview').waitFor();

  // A key: the dialog keeps the focus, and returns it.
  await go(page, 'k', 'API keys');
  const newKey = page.getByRole('button', { name: 'New API key' });
  await press(newKey);
  await page.getByRole('dialog').waitFor();
  await expectTrapped(page);
  await tabTo(page.getByRole('dialog').getByLabel('Name', { exact: true }));
  await page.keyboard.type('By hand');
  await page.keyboard.press('Enter');
  await page.getByText('Copy the secret now').waitFor();
  watchSecret((await page.getByRole('dialog').locator('pre').first().textContent())!);
  await expectTrapped(page);
  await press(page.getByRole('button', { name: 'I’ve saved it' }));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(newKey)).toBe(true);

  await go(page, 'b', 'Agents');
  await press(page.getByRole('link', { name: 'New agent' }).first());
  await press(
    page.getByRole('link', { name: /^Echo assistant/ }).or(page.getByRole('button', { name: /^Echo assistant/ })),
  );
  await tabTo(page.getByLabel('Name', { exact: true }));
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('Typed');
  await tabTo(page.getByRole('button', { name: /^(Create agent|Save)$/ }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await heading(page, 'Typed').waitFor();

  await go(page, 's', 'Sessions');
  await press(page.getByRole('button', { name: 'New session' }));
  await tabTo(page.getByRole('dialog').getByLabel('Agent', { exact: true }));
  await page.keyboard.type('Refund');
  await tabTo(page.getByRole('dialog').getByLabel('First message'));
  await page.keyboard.type('The cup is broken.');
  await press(page.getByRole('button', { name: 'Start session' }));
  await heading(page, /Refund desk/).waitFor();

  await go(page, 'a', 'Approvals');
  await page.getByRole('article').nth(1).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  await expect.poll(() => hasFocus(page.getByRole('button', { name: 'Approve now' }))).toBe(true);
  await page.keyboard.press('Enter');
  await page.getByRole('article').first().getByText('by you').waitFor();

  await go(page, 's', 'Sessions');
  await press(page.getByRole('button', { name: 'Filter', exact: true }));
  await press(page.getByRole('dialog', { name: 'Add a filter' }).getByRole('button', { name: 'Agent', exact: true }));
  await press(page.getByRole('button', { name: 'Typed', exact: true }));
  await page.getByRole('button', { name: 'Agent is Typed' }).waitFor();
  await page.getByText('No matching sessions').waitFor();
  await press(page.getByRole('button', { name: 'Remove the filter Agent' }));
  await page.locator('tr[data-item]').nth(1).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await heading(page, /Refund desk/).waitFor();
});

test('by keys alone a webhook secret is rotated, the palette and the menus are used, and each gives the focus back', async () => {
  const page = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  await heading(page, 'Overview').waitFor();
  await go(page, 'w', 'Webhooks');
  await press(page.getByRole('link', { name: /staging/ }).first());
  await heading(page, /staging/).waitFor();
  const rotate = page.getByRole('main').getByRole('button', { name: 'Rotate secret' });
  await press(rotate);
  const dialog = page.getByRole('dialog', { name: 'Rotate the signing secret of staging' });
  await dialog.waitFor();
  await expectTrapped(page);
  await page.keyboard.press('Escape');
  await expect.poll(() => hasFocus(rotate)).toBe(true);
  await page.keyboard.press('Enter');
  await press(dialog.getByRole('button', { name: 'Rotate secret' }));
  const saved = page.getByRole('button', { name: 'I’ve saved it' });
  await saved.waitFor();
  watchSecret((await page.getByRole('dialog').locator('pre').first().textContent())!);
  // The browser would close it, had the page only prevented that.
  for (let times = 0; times < 6; times += 1) await page.keyboard.press('Escape');
  await expectTrapped(page);
  await press(saved);
  await saved.waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(rotate)).toBe(true);

  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search and commands' }).waitFor();
  await expectTrapped(page);
  await page.keyboard.press('Escape');
  await expect.poll(() => hasFocus(rotate)).toBe(true);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => hasFocus(rotate)).toBe(true);

  const person = page.getByRole('button', { name: /^Olga Owner/ });
  await tabTo(person, 'Shift+Tab');
  await page.keyboard.press('Enter');
  const items = page.getByRole('menuitem');
  await items.first().waitFor();
  await page.keyboard.press('ArrowDown');
  await expect.poll(() => hasFocus(items)).toBe(true);
  await page.keyboard.press('Escape');
  await expect.poll(() => hasFocus(person)).toBe(true);

  // The first stop of a page leads past the navigation.
  await page.goto(`${console.origin}/console/${console.organizationId}/environments`);
  await heading(page, 'Environments').waitFor();
  await tabTo(page.getByRole('link', { name: /^Skip/ }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
});

/** Opens each, checks it, closes it with Escape, and expects the focus where it was. */
async function expectOverlay(page: Page, opener: Locator, selector: string): Promise<void> {
  const overlay = page.locator(selector);
  await opener.focus();
  await page.keyboard.press('Enter');
  await overlay.first().waitFor();
  await expectAccessible(page, selector);
  await page.keyboard.press('Escape');
  await overlay.first().waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(opener), { message: `the focus returns to ${opener}` }).toBe(true);
}

test('every menu and popover passes axe, closes with Escape, and gives the focus back', async () => {
  const page = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  const paths = [
    '',
    '/approvals',
    '/sessions',
    `/sessions/${sessionId}`,
    '/agents',
    `/agents/${agentId}`,
    '/playground',
    '/webhooks',
    '/webhooks/staging',
    '/schedules',
    '/usage',
    '/events',
    '/environments',
    '/environments/staging',
    '/keys',
    '/people',
  ];
  const done = new Set<string>();
  for (const path of paths) {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await heading(page, /./).waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
    const openers = page.locator(':is([aria-haspopup="menu"], [aria-haspopup="dialog"]):visible');
    for (const opener of await openers.all()) {
      const name = (await opener.getAttribute('aria-label')) ?? (await opener.textContent()) ?? '';
      // Openers of the frame once, and the first one of several rows.
      const kind = /^(Environment|Acme|Olga)/.test(name) ? name : `${path} ${name.replace(/ for .*/, '')}`;
      if (done.has(kind)) continue;
      done.add(kind);
      await expectOverlay(page, opener, '[role="menu"], [role="dialog"].popover');
    }
  }
  expect(done.size).toBeGreaterThan(10);
}, 300_000);

/** The page, what opens its dialog, and the item if that is a menu. */
const dialogs: [path: string, opener: string, item?: string][] = [
  ['/sessions', 'New session'],
  ['/sessions/$sessionId', 'Share'],
  ['/sessions/$sessionId', 'Actions for this session', 'Cancel session'],
  ['/agents', 'Actions for Refund desk', 'Archive agent'],
  ['/agents/$agentId', 'Other actions', 'Archive'],
  ['/schedules', 'New schedule'],
  ['/schedules', 'Actions for Every morning', 'Edit'],
  ['/schedules', 'Actions for Every morning', 'Delete'],
  ['/budgets', 'Create budget'],
  ['/webhooks/staging', 'Rotate secret'],
  ['/webhooks/staging', 'Actions for this webhook', 'Edit'],
  ['/webhooks/staging', 'Actions for this webhook', 'Resend since…'],
  ['/webhooks/staging', 'Actions for this webhook', 'Delete'],
  ['/environments', 'New environment'],
  ['/environments', 'Actions for staging', 'Change retention'],
  ['/environments', 'Actions for staging', 'Delete'],
  ['/environments/staging', 'Set secret'],
  ['/keys', 'New API key'],
  ['/keys', 'Actions for Backend', 'Edit'],
  ['/keys', 'Actions for Backend', 'Rotate secret'],
  ['/people', 'Invite person'],
  ['/events', 'Verify event log'],
];

test('every dialog passes axe, closes with Escape unless it shows a secret, and gives the focus back', async () => {
  const page = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  let open = '';
  const show = async (path: string) => {
    if (path === open) return;
    open = path;
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await heading(page, /./).waitFor();
    await page.getByText('Loading…').first().waitFor({ state: 'detached' });
  };
  for (const [path, name, item] of dialogs) {
    await show(path.replace('$sessionId', sessionId).replace('$agentId', agentId));
    const opener = page.getByRole('main').getByRole('button', { name, exact: true }).first();
    await opener.focus();
    await page.keyboard.press('Enter');
    if (item !== undefined) {
      await page.getByRole('menuitem', { name: item, exact: true }).focus();
      await page.keyboard.press('Enter');
    }
    await page.locator('dialog[open]').waitFor();
    await expectAccessible(page, 'dialog[open]');
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => hasFocus(opener), { message: `the focus returns to ${name} of ${path}` }).toBe(true);
  }

  // Escape, again and again, does not close the one that shows a secret: the browser would, had the page only prevented that.
  await show('/keys');
  const opener = page.getByRole('main').getByRole('button', { name: 'New API key' });
  await press(opener);
  await tabTo(page.getByRole('dialog').getByLabel('Name', { exact: true }));
  await page.keyboard.type('Shown once');
  await page.keyboard.press('Enter');
  await page.getByText('Copy the secret now').waitFor();
  watchSecret((await page.getByRole('dialog').locator('pre').first().textContent())!);
  for (let times = 0; times < 6; times += 1) await page.keyboard.press('Escape');
  await expectTrapped(page);
  await press(page.getByRole('button', { name: 'I’ve saved it' }));
  await page.locator('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(opener)).toBe(true);
}, 300_000);

test('Escape asks before it discards what was typed in a dialog, and closes an untouched one at once', async () => {
  const page = await console.open(console.owner, '/schedules', { viewport: { width: 1440, height: 900 } });
  const opener = page.getByRole('button', { name: 'New schedule' });
  const form = page.getByRole('dialog', { name: 'New schedule' });
  const ask = page.getByRole('dialog', { name: 'Discard changes?' });
  const name = form.getByLabel('Name (optional)');
  await press(opener);
  // A choice is not work that would be lost.
  await form.getByLabel('Close each session after its first turn').uncheck();
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(opener)).toBe(true);

  await press(opener);
  await tabTo(name);
  await page.keyboard.type('Nightly');
  await page.keyboard.press('Escape');
  await ask.waitFor();
  await expectTrapped(page);
  await expectAccessible(page, 'dialog[open]');
  // Escape, again and again, keeps what was typed.
  for (let times = 0; times < 6; times += 1) await page.keyboard.press('Escape');
  await press(ask.getByRole('button', { name: 'Keep editing' }));
  await ask.waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(name)).toBe(true);
  expect(await name.inputValue()).toBe('Nightly');
  await page.keyboard.press('Escape');
  await press(ask.getByRole('button', { name: 'Discard' }));
  await page.locator('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(opener)).toBe(true);

  // A button that says so needs no question.
  await press(opener);
  await tabTo(name);
  await page.keyboard.type('Nightly');
  await press(form.getByRole('button', { name: 'Cancel' }));
  await page.locator('dialog').waitFor({ state: 'detached' });
});

test('the chosen step of a trace has a ring, and its drawer passes axe and gives the focus back', async () => {
  const page = await console.open(console.owner, `/sessions/${sessionId}?tab=trace`, {
    viewport: { width: 1440, height: 900 },
  });
  const steps = page.getByRole('treegrid');
  await tabTo(steps);
  await page.keyboard.press('End');
  const ring = () =>
    steps.evaluate((grid) => {
      const active = document.getElementById(grid.getAttribute('aria-activedescendant') ?? '');
      return active && `${getComputedStyle(active).outlineStyle} ${getComputedStyle(active).outlineWidth}`;
    });
  await expect.poll(ring).toBe('solid 2px');
  await page.keyboard.press('Enter');
  const drawer = page.locator('.drawer');
  await drawer.waitFor();
  await expectAccessible(page, '.drawer');
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await expect.poll(() => hasFocus(steps)).toBe(true);
});

test('after a deletion a toast confirms it, and the focus is on the next row, or else on the heading of the list', async () => {
  const { client } = console.service;
  for (const name of ['first', 'last']) await client.budgets.set(name, { limitUsd: 1, period: 'day' });
  for (const name of ['ONE', 'TWO']) {
    await client.environments.secrets.set('staging', name, {
      value: 'v'.repeat(20),
      allowedHosts: ['api.example.com'],
    });
  }
  await client.schedules.create({ agentId, environment: 'staging', cron: '0 10 * * *', name: 'Every noon' });
  await client.keys.create({ name: 'Unused', permission: 'read' });
  await console.owner.client.invitations.create({ role: 'viewer', name: 'Vera' });
  const page = await console.open(console.owner, '', { viewport: { width: 1440, height: 900 } });
  const show = async (path: string) => {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    await heading(page, /./).waitFor();
  };
  const confirm = async (action: string, toast: string) => {
    await press(page.getByRole('dialog').getByRole('button', { name: action }));
    await page.getByRole('status').getByText(toast, { exact: true }).waitFor();
    await page.locator('dialog').waitFor({ state: 'detached' });
  };
  const remove = async (name: string, action: string, toast: string) => {
    await press(page.getByRole('button', { name: `Actions for ${name}` }));
    await page.getByRole('menuitem', { name: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    await confirm(action, toast);
    await page.getByRole('button', { name: `Actions for ${name}` }).waitFor({ state: 'detached' });
  };
  const expectFocus = (target: Locator) => expect.poll(() => hasFocus(target)).toBe(true);
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });

  await show('/budgets');
  await remove('first', 'Delete budget', 'Budget deleted');
  await expectFocus(row('last'));
  await remove('last', 'Delete budget', 'Budget deleted');
  await page.getByText('No budgets yet').waitFor();
  await expectFocus(heading(page, 'Budgets'));

  await show('/environments/staging');
  // At once in the list, before the service has answered.
  await remove('TWO', 'Delete secret', 'Secret deleted');
  await expectFocus(row('ONE'));
  // The dialog is in the row.
  await show('/schedules');
  await remove('Every noon', 'Delete schedule', 'Schedule deleted');
  await expectFocus(page.getByRole('link', { name: /Every morning/ }));
  await show('/keys');
  await remove('Unused', 'Delete key', 'Key deleted');
  await expectFocus(page.locator('tr[data-index]'));

  await show('/people');
  await press(page.getByRole('button', { name: /^Withdraw the invitation for Vera/ }));
  await confirm('Withdraw', 'Invitation withdrawn');
  await page.getByText('No pending invitations').waitFor();
  await expectFocus(page.getByRole('heading', { name: 'Invitations' }));
});

test('going back from what was opened by keyboard focuses its row, and from what was clicked the heading', async () => {
  const { client } = console.service;
  for (const input of ['The plate is broken.', 'The bowl is broken.']) {
    await client.sessions.open({ agentId, environment: 'staging', input, endUser: { id: 'back' } });
  }
  const page = await console.open(console.owner, '/sessions?endUserId=back');
  const row = page.getByRole('link', { name: /The plate is broken/ });
  await row.waitFor();
  await page.locator('h1').focus();
  for (const key of ['j', 'j']) await page.keyboard.press(key);
  await expect.poll(() => hasFocus(row)).toBe(true);
  await page.keyboard.press('Enter');
  await heading(page, /The plate is broken/).waitFor();
  await page.goBack();
  await heading(page, 'Sessions').waitFor();
  await expect.poll(() => hasFocus(row)).toBe(true);
  // The keys continue from there.
  await page.keyboard.press('k');
  await expect.poll(() => hasFocus(page.getByRole('link', { name: /The bowl is broken/ }))).toBe(true);
  await row.click();
  await heading(page, /The plate is broken/).waitFor();
  await page.goBack();
  await expect.poll(() => hasFocus(heading(page, 'Sessions'))).toBe(true);
});
