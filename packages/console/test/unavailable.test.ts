// The console without a network, and after an upgrade of the service.
import type { Locator } from 'playwright-core';
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

for (const [device, viewport] of [
  ['a desktop', { width: 1440, height: 900 }],
  ['a phone', { width: 375, height: 700 }],
] as const) {
  test(`on ${device}, the notice that there is no connection covers neither the message box nor the save button`, async () => {
    const { client } = console_.service;
    const model = {
      provider: 'scripted' as const,
      model: 'x',
      settings: { script: [{ text: 'A long line.\n\n'.repeat(80) }] },
    };
    const { agentId } = await client.agents.create({ name: 'Helper', model });
    const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Hello' });
    const page = await console_.open(console_.owner, `/sessions/${sessionId}`, { viewport });
    const notice = page.getByRole('status').filter({ hasText: 'You are offline.' });
    /** Where the frame begins that is below the page. */
    const endOf = async () => {
      const bar = (await notice.boundingBox())!;
      const bottomBar = await page.locator('.bottom-bar').boundingBox();
      // Parts of pixels.
      expect(Math.floor(bar.y + bar.height)).toBeLessThanOrEqual(Math.ceil(bottomBar?.y ?? viewport.height));
      return bar.y;
    };
    const bottomOf = async (target: Locator) => {
      const { y, height } = (await target.boundingBox())!;
      return y + height;
    };
    const message = page.locator('.composer .box');
    await message.waitFor();
    await page.getByText('A long line.').last().waitFor();
    await page.context().setOffline(true);
    await notice.waitFor();
    for (const top of [0, 300, 100_000]) {
      await page.evaluate((y) => scrollTo(0, y), top);
      expect(await bottomOf(message)).toBeLessThanOrEqual(await endOf());
    }
    await page.context().setOffline(false);
    await notice.waitFor({ state: 'detached' });

    await page.goto(`${console_.origin}/console/${console_.organizationId}/agents/${agentId}`);
    await page.getByLabel('Name', { exact: true }).fill('Renamed');
    await page.context().setOffline(true);
    await notice.waitFor();
    const save = page.getByRole('button', { name: 'Save', exact: true });
    for (const top of [0, 300, 100_000]) {
      await page.evaluate((y) => scrollTo(0, y), top);
      expect(await bottomOf(save)).toBeLessThanOrEqual(await endOf());
    }
    await page.context().close();
  });
}

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
  const tryAgain = page.getByRole('button', { name: 'Try again' });
  await tryAgain.click();
  await page.getByText('Still failing after 1 attempt.').waitFor();
  // The button shows that a request is open.
  await page.unroute('**/*');
  const answer = Promise.withResolvers<void>();
  await page.route('**/*', async (route) => {
    await answer.promise;
    await route.abort('connectionrefused');
  });
  await tryAgain.click();
  await page.locator('button[aria-busy]').waitFor();
  answer.resolve();
  await page.getByText('Still failing after 2 attempts.').waitFor();
  await page.unroute('**/*');
  await expect.poll(title(page)).toBe('Usage');
});

test('every page says that the service can’t be reached, until it can, and then shows what it could not load', async () => {
  const page = await console_.open(console_.owner, '/agents');
  await expect.poll(title(page)).toBe('Agents');
  // Files of the console are there: only the API is down, as it is behind a proxy.
  const down = page.getByRole('status').filter({ hasText: 'The service can’t be reached.' });
  await page.route(/\/api\/|\/console\/$/, (route) => route.fulfill({ status: 502, body: 'Bad gateway' }));
  await page.getByRole('link', { name: 'Budgets' }).click();
  await down.waitFor();
  await page.getByRole('link', { name: 'Schedules' }).click();
  await page.getByRole('alert').first().waitFor();
  await down.waitFor();
  await page.unroute(/\/api\/|\/console\/$/);
  await down.waitFor({ state: 'detached' });
  await page.getByText('No schedules yet').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('that one part of the API fails is an error of its page, and not of the service', async () => {
  const page = await console_.open(console_.owner, '/agents');
  await expect.poll(title(page)).toBe('Agents');
  await page.evaluate(() => {
    const seen = window as { unreachable?: boolean };
    new MutationObserver(() => {
      seen.unreachable ||= document.body.innerText.includes('can’t be reached');
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  const looked = page.waitForResponse((response) => new URL(response.url()).pathname === '/console/');
  let requests = 0;
  await page.route(/\/api\/v1\/budgets/, (route) => {
    requests += 1;
    return route.fulfill({ status: 504, body: 'Gateway timeout' });
  });
  await page.getByRole('link', { name: 'Budgets' }).click();
  await page.getByRole('alert').first().waitFor();
  expect((await looked).ok()).toBe(true);
  const before = requests;
  await page.getByRole('link', { name: 'Schedules' }).click();
  await page.getByText('No schedules yet').waitFor();
  expect(requests).toBe(before);
  expect(await page.evaluate(() => (window as { unreachable?: boolean }).unreachable ?? false)).toBe(false);
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

test('a page whose requests are not answered says so once, and sends them again on demand', async () => {
  const page = await console_.open(console_.owner, '/agents');
  await expect.poll(title(page)).toBe('Agents');
  const slow = page.getByRole('status').filter({ hasText: 'This is taking longer than usual.' });
  let isHanging = true;
  await page.route(/\/api\/v1\/(?!events)/, (route) => (isHanging ? undefined : route.continue()));
  await page.clock.install();
  for (const name of ['Schedules', 'Overview']) {
    await page.getByRole('link', { name, exact: true }).click();
    await expect.poll(title(page)).toBe(name);
    await page.locator('main .bone').first().waitFor();
    expect(await slow.count()).toBe(0);
    await page.clock.fastForward(8_000);
    await slow.waitFor();
    expect(await slow.count()).toBe(1);
  }
  isHanging = false;
  await slow.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('region', { name: 'Needs attention' }).waitFor();
  await slow.waitFor({ state: 'detached' });
});
