// Signing in with the organization's own provider, including the redirects there and back.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configOf, type OidcProvider, startOidcProvider } from '../../server/test/support/oidc-provider.ts';
import { watchSecret } from '../../server/test/support/service.ts';
import { newPage } from './support/browser.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let provider: OidcProvider;
let console: TestConsole;
beforeAll(async () => {
  provider = await startOidcProvider();
  console = await startConsole({ config: configOf(provider) });
});
afterAll(async () => {
  await console.service.stop();
  await provider.close();
});

async function newBrowserPage(path: string): Promise<Page> {
  const page = await newPage();
  await page.goto(path.startsWith('http') ? path : `${console.origin}/console${path}`);
  return page;
}

test('an invited person joins with the provider, and later signs in with it to the page they asked for', async () => {
  const { link } = await console.owner.client.invitations.create({ role: 'member' });
  watchSecret(new URL(link!).hash.slice(1));
  provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida Invited' };
  const first = await newBrowserPage(link!);
  await first.getByRole('button', { name: 'Continue with Acme accounts' }).click();
  await first.getByText('You are signed in as Ida Invited').waitFor();
  await first.getByRole('button', { name: 'Join Acme' }).click();
  await first.getByRole('button', { name: /^Ida Invited/ }).waitFor();
  await first.context().close();

  const again = await newBrowserPage(`/${console.organizationId}/environments?environment=staging`);
  await again.getByRole('button', { name: 'Sign in with Acme accounts' }).click();
  await again.getByRole('heading', { name: 'Environments' }).waitFor();
  expect(new URL(again.url()).searchParams.get('environment')).toBe('staging');
});

test.each([
  ['eve@example.com', /No user here has this account/],
  ['olga@example.com', /This account is not connected to a user/],
])(
  'a person without an invitation is refused with the reason, even with the email of a member: %s',
  async (email, why) => {
    provider.next = { sub: 'eve', email, email_verified: true, name: 'Eve' };
    const page = await newBrowserPage('/sign-in');
    await page.getByRole('button', { name: 'Sign in with Acme accounts' }).click();
    await page.getByText(why).waitFor();
    expect(await page.context().cookies()).not.toContainEqual(
      expect.objectContaining({ name: expect.stringContaining('session_token') }),
    );
    await page.context().close();
  },
);

test('a signed-in user connects the provider to their account and disconnects it again', async () => {
  const member = await console.person('member', 'Connie Connected');
  provider.next = { sub: 'connie', email: 'connie@example.com', email_verified: true, name: 'Connie' };
  const page = await console.open(member, '/account');
  await page.getByRole('button', { name: 'Connect with Acme accounts' }).click();
  await page.getByText('Your account there is connected').waitFor();
  await page.context().close();
  const again = await newBrowserPage('/sign-in');
  await again.getByRole('button', { name: 'Sign in with Acme accounts' }).click();
  await again.getByRole('button', { name: /^Connie Connected/ }).click();
  await again.getByRole('menuitem', { name: 'Your account' }).click();
  await again.getByRole('button', { name: 'Disconnect Acme accounts' }).click();
  await again.getByRole('button', { name: 'Connect with Acme accounts' }).waitFor();
});
