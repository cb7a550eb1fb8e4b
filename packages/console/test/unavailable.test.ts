// The console without a network, and after an upgrade of the service.
import { beforeAll, expect, test } from 'vitest';
import { startConsole, type TestConsole } from './support/console.ts';

let console_: TestConsole;
beforeAll(async () => {
  console_ = await startConsole();
  return () => console_.service.stop();
});

const title = (page: Awaited<ReturnType<TestConsole['open']>>) => () =>
  page.getByRole('heading', { level: 1 }).innerText();

test('a page opened without a network says so, and loads when there is one', async () => {
  const page = await console_.open(console_.owner, '/agents');
  await expect.poll(title(page)).toBe('Agents');
  await page.context().setOffline(true);
  await expect.poll(() => page.getByText('You are offline. Pages update').isVisible()).toBe(true);
  await page.getByRole('link', { name: 'Usage' }).click();
  await expect.poll(title(page)).toBe('You are offline');
  await page.context().setOffline(false);
  await expect.poll(title(page)).toBe('Usage');
  expect(new URL(page.url()).pathname).toMatch(/\/usage$/);
});

test('a page whose files are gone since an upgrade loads the new build by itself', async () => {
  const page = await console_.open(console_.owner, '/agents');
  let isGone = true;
  await page.route(/assets\/usage-/, (route) => (isGone ? route.fulfill({ status: 404 }) : route.continue()));
  await page.exposeFunction('upgraded', () => {
    isGone = false;
  });
  // The reload gets a build that has its files.
  await page.addInitScript('upgraded()');
  await page.getByRole('link', { name: 'Usage' }).click();
  await expect.poll(title(page)).toBe('Usage');
  expect(isGone).toBe(false);
});

test('while the service is down, a page that is opened says so in the frame, and loads when it is back', async () => {
  const page = await console_.open(console_.owner, '/agents');
  await expect.poll(title(page)).toBe('Agents');
  await page.route('**/*', (route) => route.abort('connectionrefused'));
  await page.getByRole('link', { name: 'Usage' }).click();
  await expect.poll(title(page)).toBe('The page could not be loaded');
  await page.getByRole('button', { name: 'Try again' }).click();
  expect(await title(page)()).toBe('The page could not be loaded');
  await page.unroute('**/*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect.poll(title(page)).toBe('Usage');
});

test('if the files are still gone after that, the page reports it instead of reloading again and again', async () => {
  const page = await console_.open(console_.owner, '/agents');
  let loads = 0;
  page.on('load', () => (loads += 1));
  await page.route(/assets\/usage-/, (route) => route.fulfill({ status: 404 }));
  await page.getByRole('link', { name: 'Usage' }).click();
  await expect.poll(() => loads).toBe(1);
  await expect.poll(title(page)).toBe('The page could not be loaded');
  expect(loads).toBe(1);
  await page.unroute(/assets\/usage-/);
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect.poll(title(page)).toBe('Usage');
});
