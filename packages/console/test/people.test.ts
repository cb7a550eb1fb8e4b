// Signing in and out, and managing people, in the browser.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
});

async function newBrowserPage(): Promise<Page> {
  return await newPage();
}

async function signIn(page: Page, { email, password }: { email: string; password: string }): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

test('signing in leads to the page that was asked for; a wrong password reveals nothing else', async () => {
  const page = await newBrowserPage();
  await page.goto(`${console.origin}/console/${console.organizationId}/environments/staging`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await expectAccessible(page);
  await signIn(page, { ...console.owner, password: 'not the password' });
  await page.getByText('Email or password is wrong.').waitFor();
  await signIn(page, console.owner);
  await page.getByRole('heading', { name: 'Secrets', exact: true }).waitFor();
  const [cookie] = await page.context().cookies();
  watchSecret(cookie!.value);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax' });
  expect(await page.evaluate('document.cookie')).toBe('');
});

test('signing in never redirects to another site', async () => {
  const page = await newPage();
  // Its siblings are in enter.test.ts.
  await page.goto(`${console.origin}/console/sign-in?from=${encodeURIComponent('//evil.example/')}`);
  await signIn(page, console.owner);
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  expect(new URL(page.url()).origin).toBe(console.origin);
});

test('signing out applies to every tab, and signing out everywhere to every browser', async () => {
  const member = await console.person('member');
  const first = await console.open(member, '/environments');
  const second = await first.context().newPage();
  await second.goto(first.url());
  await second.getByRole('button', { name: /^member/ }).click();
  await second.getByRole('menuitem', { name: 'Sign out' }).click();
  await second.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(await second.getByText('Your session has expired.').count()).toBe(0);
  await first.reload();
  await first.getByRole('heading', { name: 'Sign in' }).waitFor();
  await first.context().close();

  const here = await newBrowserPage();
  const there = await newBrowserPage();
  for (const page of [here, there]) {
    await page.goto(`${console.origin}/console/sign-in`);
    await signIn(page, member);
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  }
  await here.getByRole('button', { name: /^member/ }).click();
  await here.getByRole('menuitem', { name: 'Your account' }).click();
  await here.getByText('this browser').waitFor();
  await here.getByRole('button', { name: 'Sign out everywhere' }).click();
  await here.getByRole('heading', { name: 'Sign in' }).waitFor();
  await there.reload();
  await there.getByRole('heading', { name: 'Sign in' }).waitFor();
});

test('an admin invites, changes a role and removes a member, with immediate effect in open pages', async () => {
  const page = await console.open(console.owner, '/people');
  await page.getByRole('button', { name: 'Invite person' }).click();
  await page.getByLabel('Name').fill('Mara Member');
  await page.getByLabel('Email').fill('mara@example.com');
  await page.getByRole('radio', { name: /^viewer/ }).check();
  await page.getByRole('button', { name: 'Create link' }).click();
  const link = (await page.getByRole('dialog').locator('pre').textContent())!;
  watchSecret(new URL(link).hash.slice(1));
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('table', { name: 'Invitations' }).getByText('Mara Member').waitFor();
  await expectAccessible(page);

  const hers = await newBrowserPage();
  await hers.goto(link);
  await hers.getByRole('heading', { name: 'Join Acme' }).waitFor();
  expect(await hers.getByLabel('Your name').inputValue()).toBe('Mara Member');
  await hers.getByLabel('Password').fill(console.owner.password);
  await hers.getByRole('button', { name: 'Create account' }).click();
  await hers.getByRole('link', { name: 'Environments' }).click();
  await hers.getByText('production').first().waitFor();
  expect(await hers.getByRole('button', { name: 'New environment' }).count()).toBe(0);

  // She appears automatically, and the invitation is gone.
  await page.getByRole('table', { name: 'Members' }).getByText('Mara Member').waitFor();
  await page.getByRole('button', { name: 'Actions for Mara Member' }).click();
  await page.getByRole('menuitem', { name: 'Change role' }).click();
  await page.getByRole('radio', { name: /^member/ }).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('table', { name: 'Members' }).getByText('viewer').waitFor({ state: 'detached' });
  await hers.reload();
  await hers.getByRole('button', { name: 'New environment' }).waitFor();

  await page.getByRole('button', { name: 'Actions for Mara Member' }).click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('table', { name: 'Members' }).getByText('Mara Member').waitFor({ state: 'detached' });
  await hers.reload();
  await hers.getByRole('heading', { name: 'Sign in' }).or(hers.getByText('You are not in an organization')).waitFor();
});

test('a member of two organizations switches between them and sees only the data of each', async () => {
  const page = await console.open(console.owner, '/keys');
  await page.getByText('Test', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Organization: Acme' }).click();
  await page.getByRole('menuitem', { name: 'New organization' }).click();
  await page.getByLabel('Name').fill('Second');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create organization' }).click();
  await page.getByRole('link', { name: 'API keys' }).click();
  await page.getByText('No keys yet').waitFor();
  await page.getByRole('button', { name: 'Organization: Second' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'Acme' }).click();
  await page.getByRole('button', { name: 'Organization: Acme' }).waitFor();
  await page.getByRole('link', { name: 'API keys' }).click();
  await page.getByText('Test', { exact: true }).waitFor();
});

test('hostile names and user agents are shown as text on every page', async () => {
  const hostile = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  const named = await console.person('viewer', hostile);
  const userAgent = `${hostile} Chrome/1`;
  await fetch(`${console.origin}/console/api/sign_in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: console.origin, 'user-agent': userAgent },
    body: JSON.stringify({ email: named.email, password: named.password }),
  });
  const { link } = await console.owner.client.invitations.create({ role: 'viewer', name: hostile });
  await console.owner.client.organization.update({ name: hostile });
  const pages: Page[] = [];
  for (const path of ['/people', '/events']) pages.push(await console.open(console.owner, path));
  pages.push(await console.open(named, '/account'), await newBrowserPage(), await newBrowserPage());
  await pages.at(-2)!.goto(link!);
  await pages.at(-1)!.goto(`${console.origin}/console/sign-in?error=${encodeURIComponent(hostile)}`);
  for (const page of pages) {
    // Not the options of the select, which are in the page but not visible.
    await page.getByText('<img src=x').filter({ visible: true }).first().waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await page.title()).not.toBe('taken');
    await page.context().close();
  }
  await console.owner.client.organization.update({ name: 'Acme' });
});

test('a passkey is added and signs in, without a password', async () => {
  const member = await console.person('member', 'Petra Passkey');
  const page = await console.open(member, '/account');
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await page.getByLabel('Device name').fill('My phone');
  await page.getByRole('button', { name: 'Add passkey' }).click();
  await page.getByRole('table', { name: 'Passkeys' }).getByText('My phone').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: /^Petra/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByRole('button', { name: /^Petra/ }).waitFor();
});

test('a second link opened in the same tab replaces the first', async () => {
  const links: string[] = [];
  for (const role of ['viewer', 'admin'] as const) {
    const { link } = await console.owner.client.invitations.create({ role, name: `A ${role}` });
    watchSecret(new URL(link!).hash.slice(1));
    links.push(link!);
  }
  const page = await newBrowserPage();
  await page.goto(links[0]!);
  await page.getByText('as viewer').waitFor();
  await page.getByLabel('Your name').fill('Typed into the first');
  await page.goto(links[1]!);
  await page.getByText('as admin').waitFor();
  expect(await page.getByLabel('Your name').inputValue()).toBe('A admin');
  expect(page.url()).not.toContain('#');
  await page.reload();
  await page.getByText('as admin').waitFor();
});

test('every button in a table row has an accessible name that identifies the row', async () => {
  const person = await console.person('admin', 'Nora Named');
  for (const role of ['viewer', 'member'] as const) await person.client.invitations.create({ role });
  const page = await console.open(person, '/account');
  for (const browserOf of ['Firefox/1 Linux', 'Safari/1 iPhone']) {
    const { password, email } = person;
    await fetch(`${console.origin}/console/api/sign_in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: console.origin, 'user-agent': browserOf },
      body: JSON.stringify({ email, password }),
    });
  }
  for (const [path, table] of [
    ['/account', 'Sign-ins'],
    ['/people', 'Invitations'],
  ] as const) {
    await page.goto(`${console.origin}/console/${console.organizationId}${path}`);
    const buttons = page.getByRole('table', { name: table }).getByRole('button');
    await buttons.nth(1).waitFor();
    const names = await buttons.evaluateAll((all) =>
      all.map((one) => one.getAttribute('aria-label') ?? one.textContent),
    );
    expect(new Set(names).size, names.join()).toBe(names.length);
  }
});

test('changing the password keeps the page signed in and signs out other browsers', async () => {
  const member = await console.person('member', 'Paul Password');
  const other = await newBrowserPage();
  await other.goto(`${console.origin}/console/sign-in`);
  await signIn(other, member);
  await other.getByRole('navigation', { name: 'Pages' }).waitFor();
  const page = await console.open(member, '/account');
  const next = 'another long sentence for tests';
  watchSecret(next);
  await page.getByLabel('Current password').fill(member.password);
  await page.getByLabel('New password').fill(next);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Password changed').waitFor();
  await page.getByRole('link', { name: 'Environments' }).click();
  await page.getByRole('button', { name: 'New environment' }).click();
  await page.getByLabel('Name').fill('after-password');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('table').getByText('after-password').waitFor();
  await other.reload();
  await other.getByRole('heading', { name: 'Sign in' }).waitFor();
});
