// API keys in the browser.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
});

async function shownSecret(page: Page): Promise<string> {
  const secret = (await page.getByRole('dialog').locator('pre').first().textContent())!;
  watchSecret(secret);
  return secret;
}

test('a key is created, works, is shown once, stops working when rotated, and is deleted', async () => {
  const page = await console.open(console.owner, '/keys');
  await page.getByRole('button', { name: 'New API key' }).first().click();
  await page.getByLabel('Name').fill('billing service');
  await page.getByRole('radio', { name: /^write/ }).check();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('Copy the secret now').waitFor();
  const secret = await shownSecret(page);
  expect(secret).toMatch(/^sbk_/);
  const me = await console.service.clientWith(secret).me();
  expect(me).toMatchObject({ permission: 'write', apiKey: { name: 'billing service' } });
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  expect(await page.content()).not.toContain(secret);

  await page.getByRole('button', { name: 'Actions for billing service' }).click();
  await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
  await page.getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByText('Copy the secret now').waitFor();
  const next = await shownSecret(page);
  await expect(console.service.clientWith(secret).me()).rejects.toMatchObject({ code: 'token_rotated' });
  expect((await console.service.clientWith(next).me()).permission).toBe('write');
  await page.getByRole('button', { name: 'I’ve saved it' }).click();

  await page.getByRole('button', { name: 'Actions for billing service' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete key' }).click();
  await page.getByText('billing service', { exact: true }).waitFor({ state: 'detached' });
  await expect(console.service.clientWith(next).me()).rejects.toMatchObject({ code: 'token_revoked' });
});

test('after a rotation with a grace period the page shows the old secret until it is ended, and both work', async () => {
  const { secret, secretPreview } = await console.service.client.keys.create({
    name: 'nightly export',
    permission: 'read',
  });
  const page = await console.open(console.owner, '/keys');
  const row = page.getByRole('row', { name: /nightly export/ });
  await page.getByRole('button', { name: 'Actions for nightly export' }).click();
  await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
  await page.getByRole('radio', { name: /^In a day/ }).check();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByText('Copy the secret now').waitFor();
  const next = await shownSecret(page);
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  await row.getByText(/works until/).waitFor();
  expect(await row.textContent()).toContain(`${secretPreview} works until`);
  for (const one of [secret!, next]) expect((await console.service.clientWith(one).me()).permission).toBe('read');

  await page.getByRole('button', { name: 'Actions for nightly export' }).click();
  await page.getByRole('menuitem', { name: 'End the old secret' }).click();
  await page.getByRole('button', { name: 'End old secret' }).click();
  await row.getByText(/works until/).waitFor({ state: 'detached' });
  await expect(console.service.clientWith(secret!).me()).rejects.toMatchObject({ code: 'token_rotated' });
  expect((await console.service.clientWith(next).me()).permission).toBe('read');
});

test('a key is given chosen scopes and an agent, the form says what it can do, and warns of one that runs and decides', async () => {
  const { agentId } = await console.service.client.agents.create({ name: 'Support', model: 'scripted/x' });
  await console.service.client.agents.create({ name: 'Billing', model: 'scripted/x' });
  const page = await console.open(console.owner, '/keys');
  await page.getByRole('button', { name: 'New API key' }).first().click();
  const dialog = page.getByRole('dialog');
  await page.getByLabel('Name').fill('chat page');
  await page.getByRole('radio', { name: /^chosen scopes/ }).check();
  await dialog.getByText('Can run and read sessions.').waitFor();
  await page.getByRole('checkbox', { name: /^approvals:decide/ }).check();
  await dialog.getByText(/can both run sessions and decide/).waitFor();
  await expectAccessible(page);
  await page.getByRole('checkbox', { name: /^approvals:decide/ }).uncheck();
  await dialog.getByText(/can both run sessions and decide/).waitFor({ state: 'detached' });
  await page.getByLabel('All agents').uncheck();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('group', { name: 'Agents' }).getByRole('alert').waitFor();
  await page.getByRole('checkbox', { name: 'Support' }).check();
  await dialog.getByText('Can run and read sessions of the agent Support.').waitFor();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('Copy the secret now').waitFor();
  const secret = await shownSecret(page);
  expect((await console.service.clientWith(secret).me()).apiKey).toMatchObject({
    permission: null,
    scopes: ['sessions:read', 'sessions:run'],
    agents: [agentId],
  });
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  const row = page.getByRole('row', { name: /chat page/ });
  await row.getByText('Run and read sessions of the agent Support').waitFor();

  await page.getByRole('button', { name: 'Actions for chat page' }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await page.getByLabel('All agents').check();
  await page.getByRole('radio', { name: /^read / }).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await row.getByText('Read all but keys and secrets').waitFor();
  expect((await console.service.clientWith(secret).me()).apiKey).toMatchObject({ permission: 'read', agents: null });
});

test('limits are set, shown with what is used of them, and removed', async () => {
  const page = await console.open(console.owner, '/keys');
  await page.getByRole('button', { name: 'New API key' }).first().click();
  await page.getByLabel('Name').fill('limited');
  await page.getByText('More options').click();
  await page.getByLabel('Max requests per minute').fill('many');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Max requests per minute').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Max requests per minute').fill('1200');
  await page.getByLabel('Max cost per day').fill('2.50');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('Copy the secret now').waitFor();
  await shownSecret(page);
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  const row = page.getByRole('row', { name: /limited/ });
  await row.getByText('$0.00 of $2.50').waitFor();
  await row.getByText('max. 1,200/min').waitFor();

  await page.getByRole('button', { name: 'Actions for limited' }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await page.getByText('More options').click();
  await page.getByLabel('Max requests per minute').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await row.getByText('max. 1,200/min').waitFor({ state: 'detached' });
  const { data } = await console.service.client.keys.list();
  expect(data.find(({ name }) => name === 'limited')).toMatchObject({ requestsPerMinute: null, maxCostUsdPerDay: 2.5 });
});

test('invalid input is reported at its field and creates no key', async () => {
  const page = await console.open(console.owner, '/keys');
  await page.getByRole('button', { name: 'New API key' }).first().click();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Name').fill('narrow');
  await page.getByText('More options').click();
  // A limited key without environments is refused; it never means every environment.
  await page.getByLabel('All environments').uncheck();
  await page.getByRole('checkbox', { name: 'staging' }).waitFor();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('group', { name: 'Environments' }).getByRole('alert').waitFor();
  await page.getByRole('checkbox', { name: 'staging' }).check();
  await page.getByLabel('Allowed IP addresses').fill('203.0.113.0/99');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Allowed IP addresses').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const { data } = await console.service.client.keys.list();
  expect(data.map(({ name }) => name)).not.toContain('narrow');
});

test('a key created elsewhere appears automatically, and hostile names are shown as text', async () => {
  const page = await console.open(console.owner, '/keys');
  await page.getByRole('table').waitFor();
  const name = `<img src=x onerror="document.title='taken'"> ${'w'.repeat(150)}`;
  await console.service.client.keys.create({ name, permission: 'read' });
  await page.getByText(name).waitFor();
  expect(await page.title()).toBe('API keys · Signalbox');
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
  await expectAccessible(page);
});

test('only admins see keys', async () => {
  const member = await console.person('member');
  const page = await console.open(member, '/keys');
  await page.getByText('Only admins can manage API keys.').waitFor();
  expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
  await expect(member.client.keys.list()).rejects.toMatchObject({ code: 'insufficient_permission' });
});

test('allowed origins are listed and replaced, and what is not an origin is refused beside the field', async () => {
  const page = await console.open(console.owner, '/organization');
  await page.getByText('None: no web page can use session tokens.').waitFor();
  await page.getByRole('button', { name: 'Edit origins' }).click();
  await page.getByRole('textbox', { name: 'Origins' }).fill('https://app.example.com\nhttps://app.example.com/chat');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/must be an origin as browsers send it/).waitFor();
  await expectAccessible(page);
  await page.getByRole('textbox', { name: 'Origins' }).fill('https://app.example.com\nhttps://*.example.org');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('listitem').filter({ hasText: 'https://*.example.org' }).waitFor();
  const { allowedOrigins } = await console.service.client.organization.get();
  expect(allowedOrigins).toEqual(['https://app.example.com', 'https://*.example.org']);
});

test('no cell of the list is cut at 1440 pixels, and amounts are aligned at their end', async () => {
  const { client } = console.service;
  const name = (permission: string) => `of a ${permission} key`;
  for (const permission of ['read', 'write', 'admin'] as const) {
    const expiresAt = new Date(Date.now() + 13 * 86_400_000).toISOString();
    await client.keys.create({ name: name(permission), permission, expiresAt, maxCostUsdPerDay: 2.5 });
  }
  const page = await console.open(console.owner, '/keys', { viewport: { width: 1440, height: 900 } });
  for (const permission of ['read', 'write', 'admin']) {
    const row = page.getByRole('row', { name: new RegExp(name(permission)) });
    await row.getByText('soon').waitFor();
    const cut = await row
      .locator('td :is(div, span)')
      .evaluateAll((parts) =>
        parts.flatMap((part) =>
          part.scrollWidth > part.clientWidth && part.clientWidth > 0 ? [part.textContent] : [],
        ),
      );
    expect(cut, permission).toEqual([]);
    expect(await row.getByText('$0.00 of $2.50').evaluate((cell) => getComputedStyle(cell).textAlign)).toBe('right');
  }
});
