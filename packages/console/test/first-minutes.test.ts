// The first minutes of a new user: from the setup link of the first start to a delivered webhook.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService, watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { browser } from './support/browser.ts';
import { consoleDir } from './support/console-dir.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ consoleDir });
});
afterAll(() => service.stop());

test('the first user opens the setup link, creates a key, runs an agent, approves a call and sees the webhooks', async () => {
  const page = await (await browser()).newPage({ viewport: { width: 360, height: 740 } });
  const link = service.setupLink!;
  watchSecret(new URL(link).hash.slice(1));
  await page.goto(link);
  await page.getByRole('heading', { name: 'Welcome to Signalbox' }).waitFor();
  // The token is not in the address, where the history or a colleague could see it.
  expect(page.url()).not.toContain('#');
  await expectAccessible(page);
  await page.getByLabel('Organization name').fill('Acme');
  await page.getByLabel('Your name').fill('Olga Owner');
  await page.getByLabel('Email').fill('olga@example.com');
  await page.getByLabel('Password').fill('short');
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByLabel('Password').and(page.locator('[aria-invalid=true]')).waitFor();
  watchSecret('a long sentence for tests');
  await page.getByLabel('Password').fill('a long sentence for tests');
  await page.getByRole('button', { name: 'Create account' }).click();

  // An empty installation links to Getting started.
  await page.getByRole('link', { name: 'Get started' }).click();
  await page.getByRole('heading', { name: 'Getting started', level: 1 }).waitFor();
  await page.getByRole('button', { name: /^Create( another)? key$/ }).click();
  await page.getByText('Copy the secret now').waitFor();
  const secret = (await page.locator('pre').first().textContent())!;
  watchSecret(secret);
  expect((await service.clientWith(secret).me()).permission).toBe('write');
  await page.getByRole('button', { name: 'Create the refund desk' }).click();
  await page.getByRole('button', { name: 'Use the built-in receiver' }).click();
  await page.getByRole('button', { name: 'Run the agent' }).click();
  await page.getByRole('button', { name: /^Approve/ }).click();
  // By keyboard: an immediate second tap would be ignored as accidental.
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await page
    .getByText(/42\.50 EUR refunded/)
    .first()
    .waitFor();
  await page.getByText('tool.call').first().waitFor();
  await page.getByText('verified').first().waitFor();
  await expectAccessible(page);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.close();
});

test('the setup link works once', async () => {
  const page = await (await browser()).newPage();
  await page.goto(service.setupLink!);
  await page.getByText('This link was used, withdrawn or has expired. Ask for a new one.').waitFor();
  await page.close();
});
