// Signing in with a real OpenID Connect provider: what people see, from the invitation to the sign-out.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { type OidcProgram, startOidcProgram } from '../support/oidc-program.ts';
import { setUp } from '../support/people.ts';
import { startTestService, type TestService } from '../support/service.ts';

let program: OidcProgram;
let service: TestService;
let owner: Browser;
beforeAll(async () => {
  program = await startOidcProgram();
  service = await startTestService({ config: program.config });
  program.register(`${new URL(service.setupLink!).origin}/console/api/auth/callback/oidc`);
  owner = await setUp(service);
});
afterAll(async () => {
  await service.stop();
  await program.close();
});

/** Goes to the provider and back. */
async function signIn(browser: Browser, wish: object = {}, change: (back: URL) => void = () => {}) {
  const begun = await browser.post('/oidc', wish);
  expect(begun.status, begun.text).toBe(200);
  const back = await program.follow(begun.json.url);
  change(back);
  const path = back.pathname.replace('/console/api', '') + back.search;
  const response = await browser.get(path);
  await browser.get('/account');
  return { path, error: new URL(response.headers.get('location')!).searchParams.get('error') };
}

test('a person joins by an invitation, signs out, and signs in again', async () => {
  program.person = { id: 'p-17', email: 'pia@example.com', name: 'Pia' };
  const browser = openBrowser(service);
  const token = tokenOf((await owner.api('POST', '/invitations', { role: 'member' })).json.link);
  expect((await signIn(browser, { token, returnTo: '/console/link' })).error).toBeNull();
  expect((await browser.post('/links/accept', { token })).json.organizations).toMatchObject([{ role: 'member' }]);
  await browser.post('/sign_out');
  expect((await browser.get('/account')).json.user).toBeNull();
  const { path } = await signIn(browser);
  expect(browser.account!.user).toMatchObject({ name: 'Pia', email: 'pia@example.com' });
  // The code and the state were used up.
  const again = openBrowser(service);
  await again.get(path);
  expect((await again.get('/account')).json.user).toBeNull();
});

test('a person who declines at the provider, or whose response is another provider’s, is not signed in', async () => {
  const browser = openBrowser(service);
  program.person = null;
  expect((await signIn(browser)).error).toBe('access_denied');
  program.person = { id: 'p-17', email: 'pia@example.com', name: 'Pia' };
  const issued = await signIn(browser, {}, (back) => {
    expect(back.searchParams.get('iss')).toBe(program.issuer);
    back.searchParams.set('iss', 'https://another.example.com');
  });
  expect(issued.error).toBe('issuer_mismatch');
  expect(browser.account!.user).toBeNull();
});
