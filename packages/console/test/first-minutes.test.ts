// The first minutes of a new user: from the setup link of the first start to a delivered webhook.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService, watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { consoleDir } from './support/console-dir.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ consoleDir });
});
afterAll(() => service.stop());

test('the first user opens the setup link, runs an agent, approves a call, sees the webhooks and creates a key', async () => {
  const page = await newPage({ viewport: { width: 360, height: 740 } });
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
  const password = page.getByLabel('Password');
  await password.fill('short');
  await page.getByRole('button', { name: 'Create account' }).click();
  // Once, at the field, which has the focus.
  await page.getByText('Password must have at least 12 characters.').waitFor();
  await expect.poll(() => password.evaluate((input) => input === document.activeElement)).toBe(true);
  expect(await page.getByRole('alert').count()).toBe(1);
  await password.fill('password1234');
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByText('Password is too easy to guess. Choose another.').waitFor();
  expect(await page.getByRole('alert').count()).toBe(1);
  watchSecret('a long sentence for tests');
  await password.fill('a long sentence for tests');
  await page.getByRole('button', { name: 'Create account' }).click();

  // The first account continues with the guide.
  await page.getByRole('heading', { name: 'Getting started', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Create the refund desk' }).click();
  await page.getByRole('button', { name: 'Run the agent' }).click();
  await page.getByRole('button', { name: /^Approve/ }).click();
  // By keyboard: an immediate second tap would be ignored as accidental.
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await page
    .getByText(/42\.50 EUR refunded/)
    .first()
    .waitFor();
  // The receiver gets what was before it, too.
  await page.getByRole('button', { name: 'Use the built-in receiver' }).click();
  await page.getByText('tool.call').first().waitFor();
  await page.getByText('verified').first().waitFor();
  await page.getByRole('button', { name: /^Create( another)? key$/ }).click();
  await page.getByText('Copy the secret now').waitFor();
  const secret = (await page.locator('pre', { hasText: /^sbk_/ }).first().textContent())!;
  watchSecret(secret);
  expect((await service.clientWith(secret).me()).permission).toBe('write');
  await expectAccessible(page);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
});

test('the setup link works once', async () => {
  const page = await newPage();
  await page.goto(service.setupLink!);
  await page.getByText('This link was used, withdrawn or has expired. Ask for a new one.').waitFor();
});
