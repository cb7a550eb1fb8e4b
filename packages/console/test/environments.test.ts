// Environments and their secrets in the browser.
import { beforeAll, expect, test } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
});

test('an environment is created and deleted; one in use can’t be deleted, and the page says why', async () => {
  const { client } = console.service;
  const page = await console.open(console.owner, '/environments');
  await page.getByRole('button', { name: 'New environment' }).click();
  await page.getByLabel('Name').fill('Not A Name');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByLabel('Name').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Name').fill('testing');
  await page.getByRole('button', { name: 'Create' }).click();
  const row = page.getByRole('row').filter({ has: page.getByText('testing', { exact: true }) });
  await row.waitFor();

  await client.webhookSubscriptions.create({ environment: 'testing', url: 'signalbox:test-receiver' });
  const remove = async () => {
    await page.getByRole('button', { name: 'Actions for testing' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete environment' }).click();
  };
  await remove();
  await page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/subscription/)
    .waitFor();
  await page
    .getByRole('dialog')
    .getByText(/^Request req_/)
    .waitFor();
  await page.keyboard.press('Escape');
  await client.webhookSubscriptions.delete('testing');
  await remove();
  await row.waitFor({ state: 'detached' });
});

test('an admin sets how long ended sessions are kept, on creation and later, and restores the operator’s default', async () => {
  const { client } = console.service;
  const page = await console.open(console.owner, '/environments');
  const kept = async () =>
    (await client.environments.list()).data.find(({ name }) => name === 'short')?.keepSessionsDays;
  await page.getByRole('button', { name: 'New environment' }).click();
  await page.getByLabel('Name').fill('short');
  await page.getByLabel('Days to keep ended sessions').fill('a week');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByLabel('Days to keep ended sessions').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Days to keep ended sessions').fill('7');
  await page.getByRole('button', { name: 'Create' }).click();
  const row = page.getByRole('row').filter({ has: page.getByText('short', { exact: true }) });
  await row.getByText('7 days').waitFor();
  expect(await kept()).toBe(7);

  const change = async (before: string, days: string) => {
    await page.getByRole('button', { name: 'Actions for short' }).click();
    await page.getByRole('menuitem', { name: 'Change retention' }).click();
    expect(await page.getByLabel('Days to keep ended sessions').inputValue()).toBe(before);
    await expectAccessible(page);
    await page.getByLabel('Days to keep ended sessions').fill(days);
    await page.getByRole('button', { name: 'Save' }).click();
  };
  await change('7', '1');
  await row.getByText('1 day', { exact: true }).waitFor();
  expect(await kept()).toBe(1);
  await change('1', '');
  await row.getByText('Operator’s default').waitFor();
  expect(await kept()).toBe(null);
});

test('a secret is set for its hosts, is never shown again, and is replaced and deleted', async () => {
  const { client } = console.service;
  const page = await console.open(console.owner, '/environments');
  await page
    .getByRole('row', { name: /^staging/ })
    .getByRole('link')
    .first()
    .click();
  await page.getByText('No secrets yet').waitFor();
  const set = async (value: string) => {
    watchSecret(value);
    await page.getByLabel('Value').fill(value);
    await page.getByRole('button', { name: 'Save secret' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(value);
  };
  await page.getByRole('button', { name: 'Set secret' }).click();
  await page.getByRole('button', { name: 'Save secret' }).click();
  await page.getByText('Name must not be empty.').waitFor();
  await page.getByLabel('Name').fill('ANTHROPIC_API_KEY');
  // The hosts of a known provider are filled in.
  expect(await page.getByLabel('Allowed hosts').inputValue()).toBe('api.anthropic.com');
  await expectAccessible(page);
  await set('a value that nobody reads again');
  const table = page.getByRole('table', { name: 'Secrets of staging' });
  await table.getByText('api.anthropic.com').waitFor();
  // The URL is that of this view, so a colleague sees the same.
  expect(new URL(page.url()).pathname).toMatch(/\/environments\/staging$/);

  // A value can't be read, so it would be lost.
  await page.getByRole('button', { name: 'Set secret' }).click();
  await page.getByLabel('Name').fill('ANTHROPIC_API_KEY');
  await page.getByLabel('Value').fill('a value that is not stored');
  await page.getByRole('button', { name: 'Save secret' }).click();
  await page.getByText('Name is taken by another secret').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect((await client.environments.secrets.list('staging')).data).toMatchObject([{ version: 1 }]);

  await page.getByRole('button', { name: 'Actions for ANTHROPIC_API_KEY' }).click();
  await page.getByRole('menuitem', { name: 'Replace value' }).click();
  await set('another value that nobody reads again');
  await expect
    .poll(async () => (await client.environments.secrets.list('staging')).data)
    .toMatchObject([{ name: 'ANTHROPIC_API_KEY', version: 2, allowedHosts: ['api.anthropic.com'] }]);

  await page.getByRole('button', { name: 'Actions for ANTHROPIC_API_KEY' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete secret' }).click();
  await page.getByText('No secrets yet').waitFor();
});

test('an environment’s page says what it has, with links to it, and its absence', async () => {
  const { client } = console.service;
  await client.environments.create({ name: 'counted' });
  await client.keys.create({ name: 'only here', permission: 'read', environments: ['counted'] });
  await client.webhookSubscriptions.create({ environment: 'counted', url: 'signalbox:test-receiver' });
  const page = await console.open(console.owner, '/environments');
  const row = page.getByRole('row', { name: /^counted/ });
  await row.getByText('nothing sent yet').waitFor();
  await row.getByRole('cell').nth(1).getByText('0', { exact: true }).waitFor();
  const keys = (await client.keys.list()).data.filter(({ environments }) => environments?.includes('counted') ?? true);
  await row.getByRole('cell').nth(3).getByText(String(keys.length), { exact: true }).waitFor();
  await client.environments.secrets.set('counted', 'COUNTED', { value: 'x', allowedHosts: ['example.com'] });
  await row.getByRole('cell').nth(4).getByText('1', { exact: true }).waitFor();
  await row.getByRole('link').first().click();
  await page.getByRole('heading', { name: 'counted', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'nothing sent yet' }).waitFor();
  await page.goto(page.url().replace('counted', 'gone'));
  await page.getByText('No such environment').waitFor();
});

test('an admin limits calls of a model, sees what waits and why a session waits, and removes the limit', async () => {
  const { client } = console.service;
  await client.environments.create({ name: 'limited' });
  const page = await console.open(console.owner, '/environments/limited');
  await page.getByText('No limits', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Add limit' }).click();
  expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('*');
  await page.getByRole('button', { name: 'Save limit' }).click();
  await page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/needs requestsPerMinute/)
    .waitFor();
  await page.getByLabel('Requests a minute').fill('0');
  await page.getByRole('button', { name: 'Save limit' }).click();
  await page.getByLabel('Requests a minute').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Requests a minute').fill('1');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Save limit' }).click();
  const row = page.getByRole('row').filter({ has: page.getByText('* (all other models)') });
  await row.getByText('none', { exact: true }).waitFor();

  const { agentId } = await client.agents.create({ name: 'Limited', model: 'scripted/x' });
  const open = () => client.sessions.open({ agentId, environment: 'limited', input: 'hi' });
  await Promise.all([open(), open(), open()]);
  await row.getByText('2, the first since').waitFor();
  await expectAccessible(page);
  const { data } = await client.sessions.list({ environment: 'limited', status: 'waiting' });
  const { sessionId } = data[0]!;
  const session = await console.open(console.owner, `/sessions/${sessionId}`);
  await session.getByText('The model is called in turn').waitFor();
  await session
    .getByRole('paragraph')
    .getByText(/has reached its limit for scripted\/x: 1 request a minute/)
    .waitFor();
  await expectAccessible(session);

  await page.getByRole('button', { name: 'Actions for the limit of * (all other models)' }).click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove limit' }).click();
  await page.getByText('No limits', { exact: true }).waitFor();
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
});

test('a member sees no secrets and cannot change retention, and a viewer changes nothing', async () => {
  const member = await console.person('member');
  const page = await console.open(member, '/environments/staging');
  await page.getByText('Keep ended sessions').waitFor();
  expect(await page.getByRole('heading', { name: 'Secrets' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /Change retention|Add limit/ }).count()).toBe(0);
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Environments' }).click();
  await page.getByRole('button', { name: 'New environment' }).waitFor();
  await page.getByRole('button', { name: 'Actions for staging' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
  expect(await page.getByRole('menuitem', { name: 'Change retention' }).count()).toBe(0);
  await expect(member.client.environments.secrets.list('staging')).rejects.toMatchObject({ status: 403 });
  await page.context().close();
  const viewer = await console.person('viewer');
  const seen = await console.open(viewer, '/environments');
  await seen.getByRole('link', { name: 'production' }).waitFor();
  expect(await seen.getByRole('button', { name: /New environment|Actions for/ }).count()).toBe(0);
  await expect(viewer.client.environments.create({ name: 'mine' })).rejects.toMatchObject({ status: 403 });
});
