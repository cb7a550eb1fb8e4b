// The frame around every page: navigation, environment, times, and a lost connection.
import { PNG } from 'pngjs';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
});

test('the environment is in the URL of every page that is opened, and the browser remembers it', async () => {
  const page = await console.open(console.owner, '/agents');
  const environment = () => new URL(page.url()).searchParams.get('environment');
  await page.getByRole('button', { name: 'Environment: All environments' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'staging' }).click();
  await expect.poll(environment).toBe('staging');
  const places = page.getByRole('navigation', { name: 'Pages' });
  await places.getByRole('link', { name: 'Environments' }).click();
  await page.getByRole('heading', { name: 'Environments', level: 1 }).waitFor();
  expect(environment()).toBe('staging');
  await page.goto(`${console.origin}/console/${console.organizationId}/agents`);
  await expect.poll(environment).toBe('staging');
  await page.getByRole('button', { name: 'Environment: staging' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'All environments' }).click();
  await expect.poll(environment).toBe(null);
  await places.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(environment()).toBe(null);
});

test('the navigation has names, then icons with names, then a bar at the bottom whose More opens it', async () => {
  const page = await console.open(console.owner, '/agents');
  const places = page.getByRole('navigation', { name: 'Pages' });
  const link = places.getByRole('link', { name: 'Agents' });
  await link.waitFor();
  const width = async () => (await link.boundingBox())?.width;
  const wide = (await width())!;
  await page.setViewportSize({ width: 900, height: 800 });
  // It is drawn anew in between.
  await expect.poll(width).toBeLessThan(wide / 2);
  await link.hover();
  await page.getByRole('tooltip', { name: 'Agents' }).waitFor();
  await expectAccessible(page);
  await page.setViewportSize({ width: 360, height: 740 });
  await link.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'More' }).click();
  await link.waitFor();
  await expectAccessible(page);
  await places.getByRole('link', { name: 'Environments' }).click();
  await page.getByRole('heading', { name: 'Environments', level: 1 }).waitFor();
  await link.waitFor({ state: 'hidden' });
  await page.getByRole('navigation', { name: 'Most used pages' }).getByRole('link', { name: 'Sessions' }).click();
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
});

test('an environment that does not exist is said to be missing, and one click shows all', async () => {
  const page = await console.open(console.owner, '/sessions?environment=gone');
  await page.getByText('There is no environment gone.').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Show all environments' }).click();
  await page.getByText('There is no environment gone.').waitFor({ state: 'detached' });
  expect(new URL(page.url()).searchParams.get('environment')).toBe(null);
});

test('a theme that is chosen in one place is chosen in the menu, and in other tabs', async () => {
  const page = await console.open(console.owner, '/agents', { colorScheme: 'light' });
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('option', { name: 'Switch to dark' }).click();
  for (const tab of [page, other]) {
    await expect.poll(() => tab.locator('html').getAttribute('data-theme')).toBe('dark');
    await tab.getByRole('button', { name: /^Olga Owner/ }).click();
    await tab.getByRole('menuitemcheckbox', { name: 'Theme: dark', checked: true }).waitFor();
    await tab.keyboard.press('Escape');
  }
});

test('times and rows are shown as the person chose, also after a reload', async () => {
  const page = await console.open(console.owner, '/environments', { timezoneId: 'UTC', locale: 'en-US' });
  const time = page.getByRole('row', { name: /^staging/ }).getByRole('time');
  const shown = () => time.textContent();
  await expect.poll(shown).toMatch(/ago|just now/);
  const row = page.getByRole('row', { name: /^staging/ });
  const height = async () => (await row.boundingBox())?.height;
  expect(await height()).toBe(28);
  const at = new Date((await time.getAttribute('datetime'))!);
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  await page.getByRole('menuitem', { name: 'Display…' }).click();
  await page.getByText('Dates', { exact: true }).click();
  await page.getByText('Comfortable').click();
  await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Done' }).click();
  const there = new Intl.DateTimeFormat('en-US', { timeZone: 'Asia/Tokyo', hour: '2-digit', minute: '2-digit' });
  await expect.poll(shown).toContain(there.format(at));
  expect(await time.getAttribute('title')).toMatch(/GMT\+9|JST/);
  await page.reload();
  await expect.poll(shown).toContain(there.format(at));
  expect(await height()).toBe(36);
});

test('times are entered in the zone in which they are shown, and both name it', async () => {
  const page = await console.open(console.owner, '/events', { timezoneId: 'America/New_York', locale: 'en-US' });
  const range = page.getByRole('button', { name: /^Time range/ });
  await range.click();
  await page.getByLabel('From').waitFor();
  expect(await page.getByText('Time zone: America/New_York').count()).toBe(2);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  await page.getByRole('menuitem', { name: 'Display…' }).click();
  await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
  await page.getByRole('button', { name: 'Done' }).click();

  await range.click();
  expect(await page.getByText('Time zone: Asia/Tokyo').count()).toBe(2);
  await page.getByLabel('From').fill('2026-01-31T09:00:00');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('range')).toBe('2026-01-31T00:00:00.000Z/');
  await expect.poll(() => range.textContent()).toMatch(/^Since Jan 31, 2026, 9:00:00 AM GMT\+9$/);
  await range.click();
  expect(await page.getByLabel('From').inputValue()).toBe('2026-01-31T09:00');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  await page.getByRole('menuitem', { name: 'Display…' }).click();
  await page.getByLabel('Time zone').selectOption('UTC');
  // Without a reload.
  await expect.poll(() => range.textContent()).toMatch(/^Since Jan 31, 2026, 12:00:00 AM UTC$/);
});

test('dates are in English like the console, with the hours that the person is used to', async () => {
  const page = await console.open(console.owner, '/environments', { timezoneId: 'UTC', locale: 'de-DE' });
  const time = page.getByRole('row', { name: /^staging/ }).getByRole('time');
  await expect.poll(() => time.getAttribute('title')).toMatch(/^[A-Z][a-z]{2} \d+, \d{4}, \d\d:\d\d:\d\d$/);
});

test('a deletion is shown at once, and what was deleted returns if the service refuses', async () => {
  const { client } = console.service;
  await client.environments.secrets.set('staging', 'PAYMENTS', {
    value: 'a value of a test',
    allowedHosts: ['a.example'],
  });
  const page = await console.open(console.owner, '/environments/staging');
  const row = page.getByRole('row', { name: /PAYMENTS/ });
  await row.waitFor();
  const answer = Promise.withResolvers<void>();
  await page.route(/secrets\/PAYMENTS/, async (route) => {
    await answer.promise;
    await route.fulfill({ status: 403, json: { code: 'insufficient_permission', detail: 'no' } });
  });
  await page.getByRole('button', { name: 'Actions for PAYMENTS' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete secret' }).click();
  await row.waitFor({ state: 'detached' });
  answer.resolve();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.keyboard.press('Escape');
  await row.waitFor();
});

test('without a connection the frame says so, stays, and can still be used on every width', async () => {
  const page = await console.open(console.owner, '/agents');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await page.context().setOffline(true);
  await page.getByText('You are offline.').waitFor();
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  await page.keyboard.press('Escape');
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByText('You are offline.').click();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('navigation', { name: 'Pages', exact: true }).waitFor();
  await page.context().setOffline(false);
  await page.getByText('You are offline.').waitFor({ state: 'detached' });
});

test('the backdrop of a dialog is as dark beside the page, where its scrollbar would be', async () => {
  const page = await console.open(console.owner, '/environments', { viewport: { width: 1000, height: 900 } });
  await page.getByRole('row', { name: /^staging/ }).waitFor();
  const colors = async () => {
    const { data, width, height } = PNG.sync.read(await page.screenshot());
    const colorAt = (x: number) => data.subarray(4 * ((height - 20) * width + x), 4 * ((height - 20) * width + x) + 3);
    return [colorAt(width - 60).join(), colorAt(width - 3).join()];
  };
  const [before] = await colors();
  expect(await page.evaluate(() => innerWidth - document.body.clientWidth)).toBeGreaterThan(0);
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  await page.getByRole('menuitem', { name: 'Display…' }).click();
  await page.getByRole('dialog').waitFor();
  const [inPage, beside] = await colors();
  expect(inPage).not.toBe(before);
  expect(beside).toBe(inPage);
});

test('nothing moves for people who asked for less motion', async () => {
  const page = await console.open(console.owner, '/agents', { reducedMotion: 'reduce' });
  await page.getByRole('button', { name: /^Olga Owner/ }).click();
  const menu = page.getByRole('menu');
  await menu.waitFor();
  const duration = await menu.evaluate((element) => getComputedStyle(element).animationDuration);
  expect(Number.parseFloat(duration)).toBeLessThanOrEqual(0.001);
});
