// The console without a mouse: in a real browser on a real service, by keys only.
import type { Locator, Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { browser } from './support/browser.ts';
import { startConsole, type TestConsole } from './support/console.ts';
import { expectTrapped, hasFocus, tabTo } from './support/keyboard.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
  const { client } = console.service;
  const refund = { name: 'refund_order', input: { order: '1042', cents: 100 } };
  const { agentId } = await client.agents.create({
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
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'The glass is broken.' });
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
  const context = await (await browser()).newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
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
  await context.close();
});
