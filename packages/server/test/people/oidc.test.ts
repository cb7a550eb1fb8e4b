// Signing in with an OpenID Connect provider: who may, and who may not.
import sql, { raw } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthenticator } from '../support/authenticator.ts';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { configOf, type OidcProvider, startOidcProvider } from '../support/oidc-provider.ts';
import { password, setUp } from '../support/people.ts';
import { asProblem } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let provider: OidcProvider;
let service: TestService;
let owner: Browser;
beforeAll(async () => {
  provider = await startOidcProvider();
  service = await startTestService({ config: configOf(provider) });
  owner = await setUp(service);
});
afterAll(async () => {
  await service.stop();
  await provider.close();
});

/** Follows the redirects to the provider and back: where the browser ends. */
async function signInByProvider(browser: Browser, wish: Record<string, unknown> = {}): Promise<URL> {
  const begun = await browser.post('/oidc', wish);
  expect(begun.status, begun.text).toBe(200);
  return comeBack(browser, await provider.follow(begun.json.url));
}

async function comeBack(browser: Browser, address: string): Promise<URL> {
  const { pathname, search } = new URL(address);
  const answer = await browser.get(pathname.replace('/console/api', '') + search);
  expect(answer.status, answer.text).toBe(302);
  await browser.get('/account');
  return new URL(answer.headers.get('location')!);
}

async function invite(): Promise<string> {
  return tokenOf((await owner.api('POST', '/invitations', { role: 'member' })).json.link);
}

test('the account names the provider that people may sign in with', async () => {
  expect((await openBrowser(service).get('/account')).json.signIn.providers).toEqual([
    { id: 'oidc', name: 'Acme accounts' },
  ]);
});

test('a person with a link joins with the provider, and signs in with it from then on', async () => {
  provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };
  const token = await invite();
  const browser = openBrowser(service);
  const back = await signInByProvider(browser, { token, returnTo: '/console/link' });
  expect(back.pathname).toBe('/console/link');
  expect(browser.account).toMatchObject({ user: { name: 'Ida', email: 'ida@example.com' }, organizations: [] });
  // A user without an organization can't create one here.
  expect(asProblem(await browser.post('/organizations', { name: 'Mine' })).code).toBe('insufficient_permission');
  expect((await browser.post('/links/accept', { token })).json.organizations).toMatchObject([{ role: 'member' }]);
  const again = openBrowser(service);
  await signInByProvider(again);
  expect(again.account!.user).toEqual(browser.account!.user);
  expect((await again.get('/sign_ins')).json.ways).toEqual({ password: false, provider: true, passkeys: 0 });
  const stored = await service.db.query<{ tokens: string | null }>(sql`
    select concat(access_token, refresh_token, id_token) as tokens from accounts where provider_id = 'oidc'`);
  expect(stored).toEqual([{ tokens: '' }]);
});

test('an unknown person without a link is refused', async () => {
  provider.next = { sub: 'eve', email: 'eve@example.com', email_verified: true, name: 'Eve' };
  const browser = openBrowser(service);
  const back = await signInByProvider(browser);
  expect([back.pathname, back.searchParams.get('error')]).toEqual(['/console/sign-in', 'signup_disabled']);
  expect(browser.account!.user).toBeNull();
  const given = { token: 'sbi_x' };
  expect(asProblem(await browser.post('/oidc', given)).code).toBe('link_invalid');
});

test.each([true, false])(
  'no one gets an account by using its email at the provider, verified there (%s) or not',
  async (isVerified) => {
    provider.next = { sub: 'mallory', email: 'mara@example.com', email_verified: isVerified, name: 'Mallory' };
    for (const wish of [{}, { token: await invite() }]) {
      const browser = openBrowser(service);
      const back = await signInByProvider(browser, wish);
      expect([back.pathname, back.searchParams.get('error')]).toEqual(['/console/sign-in', 'account_not_linked']);
      expect(browser.account!.user).toBeNull();
    }
  },
);

test('the provider’s data about a new person is limited in size', async () => {
  provider.next = { sub: 'long', email: 'long@example.com', email_verified: true, name: 'y'.repeat(100_000) };
  Object.assign(provider.next, { picture: `https://example.com/${'z'.repeat(100_000)}` });
  const long = openBrowser(service);
  await signInByProvider(long, { token: await invite() });
  expect(long.account!.user!.name).toBe('y'.repeat(200));
  const pictures = await service.db.query(sql`select image from users where email = 'long@example.com'`);
  expect(pictures).toEqual([{ image: null }]);
  provider.next = { sub: 'nameless', email: 'nameless@example.com', email_verified: true, name: ' ' };
  const nameless = openBrowser(service);
  await signInByProvider(nameless, { token: await invite() });
  expect(nameless.account!.user!.name).toBe('nameless@example.com');
  for (const email of ['not an e-mail', `${'x'.repeat(300)}@example.com`, 'nul\0@example.com']) {
    provider.next = { sub: email, email, email_verified: true, name: 'N' };
    const none = openBrowser(service);
    const back = await signInByProvider(none, { token: await invite() });
    expect(back.searchParams.get('error'), email).toBeTruthy();
    expect(none.account!.user).toBeNull();
  }
});

test('a signed-in person connects an account of the provider, and no one else can', async () => {
  provider.next = { sub: 'mara-there', email: 'm@elsewhere.example', email_verified: false, name: 'M' };
  expect(asProblem(await openBrowser(service).post('/oidc', { link: true })).code).toBe('signed_out');
  expect(asProblem(await owner.post('/oidc', { link: true }, { 'x-signalbox-csrf': 'x' })).code).toBe('csrf_refused');
  await signInByProvider(owner, { link: true });
  const { data } = await owner.client().events.list({ type: 'user.provider_connected' });
  expect(data.map(({ actor }) => actor.name)).toEqual(['Mara']);
  const browser = openBrowser(service);
  await signInByProvider(browser);
  expect(browser.account!.user).toEqual(owner.account!.user);
  const ida = openBrowser(service);
  provider.next = { ...provider.next, sub: 'ida' };
  await signInByProvider(ida);
  provider.next = { ...provider.next, sub: 'mara-there' };
  const back = await signInByProvider(ida, { link: true });
  expect(back.searchParams.get('error')).toBe('account_already_linked_to_different_user');
});

test('a person can disconnect the provider unless it is their last sign-in method', async () => {
  provider.next = { sub: 'otto', email: 'otto@example.com', email_verified: true, name: 'Otto' };
  const otto = openBrowser(service);
  const token = await invite();
  await signInByProvider(otto, { token });
  await otto.post('/links/accept', { token });
  await otto.get('/account');
  expect(asProblem(await otto.post('/oidc/disconnect')).code).toBe('conflict');
  const authenticator = createAuthenticator(new URL(service.setupLink!).origin);
  const options = (await otto.get('/auth/passkey/generate-register-options')).json;
  const given = { response: authenticator.register(options), name: 'Phone' };
  expect((await otto.post('/auth/passkey/verify-registration', given)).status).toBe(200);
  expect(asProblem(await otto.post('/oidc/disconnect', {}, { 'x-signalbox-csrf': 'x' })).code).toBe('csrf_refused');
  expect((await otto.post('/oidc/disconnect')).status).toBe(200);
  expect(asProblem(await otto.post('/oidc/disconnect')).code).toBe('not_found');
  const back = await signInByProvider(openBrowser(service));
  expect(back.searchParams.get('error')).toBeTruthy();
  // Now the passkey is the last one.
  const [{ id }] = (await otto.get('/auth/passkey/list-user-passkeys')).json;
  expect(asProblem(await otto.post('/auth/passkey/delete-passkey', { id })).code).toBe('conflict');
  const { data } = await owner.client().events.list({ type: 'user.provider_disconnected' });
  expect(data.map(({ actor }) => actor.name)).toEqual(['Otto']);
});

test('signing in with the provider ends the browser’s previous sign-in; connecting it does not', async () => {
  provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };
  const browser = openBrowser(service);
  await browser.post('/sign_in', { email: 'mara@example.com', password });
  const before = browser.cookieHeader();
  await signInByProvider(browser);
  expect(browser.account!.user!.name).toBe('Ida');
  expect((await openBrowser(service).get('/account', { cookie: before })).json.user).toBeNull();
  const mine = browser.cookieHeader();
  await signInByProvider(browser, { link: true });
  expect((await openBrowser(service).get('/account', { cookie: mine })).json.user.name).toBe('Ida');
});

test('an old sign-in can’t connect an account, so an attacker who finds it gains no other way in', async () => {
  await service.db.query(sql`update sign_ins set created_at = now() - interval '25 hours'`);
  expect(asProblem(await owner.post('/oidc', { link: true })).code).toBe('sign_in_again');
});

test('the callback works once, in the same browser', async () => {
  provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };
  const victim = openBrowser(service);
  const begun = (await victim.post('/oidc', {})).json;
  const address = await provider.follow(begun.url);
  // A page that was sent the attacker's way back would sign its reader in as the attacker.
  const other = openBrowser(service);
  await comeBack(other, address);
  expect(other.account!.user).toBeNull();
});

const ida = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };

test.each<[string, Partial<OidcProvider['next']>]>([
  ['of another issuer', { tamper: { iss: 'https://evil.example' } }],
  ['for another client', { tamper: { aud: 'another' } }],
  ['for two clients, issued to the other', { tamper: { aud: ['signalbox-test', 'another'], azp: 'another' } }],
  ['for two clients that does not say to which', { tamper: { aud: ['signalbox-test', 'another'] } }],
  ['that has expired', { tamper: { exp: 1 } }],
  ['that never expires', { tamper: { exp: undefined } }],
  ['for another sign-in', { tamper: { nonce: 'of another' } }],
  ['for no sign-in', { tamper: { nonce: undefined } }],
  ['without a subject', { tamper: { sub: undefined } }],
  ['signed by a stranger', { badSignature: true }],
  ['that is not signed', { algorithm: 'none' }],
  ['signed with the public key', { algorithm: 'HS256' }],
  ['that is missing', { noIdToken: true }],
  ['of one person, with the profile of another', { tamper: { email: undefined, sub: 'another' }, userInfo: ida }],
])('an ID token %s does not sign in', async (_title, fault) => {
  provider.next = { ...ida, ...fault };
  const browser = openBrowser(service);
  const back = await signInByProvider(browser);
  expect(back.searchParams.get('error')).toBeTruthy();
  expect(browser.account!.user).toBeNull();
});

test('the email may come from the provider’s endpoint, for the same person', async () => {
  provider.next = { ...ida, tamper: { email: undefined } };
  const browser = openBrowser(service);
  await signInByProvider(browser);
  expect(browser.account!.user!.name).toBe('Ida');
});

test('an account belongs to the issuer that named it: the same id of another provider is another person', async () => {
  const stored = () =>
    service.db.query<{ issuer: string | null }>(sql`
      select issuer from accounts where provider_id = 'oidc' and account_id = 'ida'`);
  expect(await stored()).toEqual([{ issuer: provider.issuer }]);
  // Stored by the previous release, it belongs to the issuer of the next sign-in.
  await service.db.query(sql`update accounts set issuer = null where account_id = 'ida'`);
  provider.next = ida;
  await signInByProvider(openBrowser(service));
  expect(await stored()).toEqual([{ issuer: provider.issuer }]);

  const successor = await startOidcProvider();
  const moved = await startTestService({ database: service.database, config: configOf(successor) });
  try {
    successor.next = { ...ida, email: 'someone@else.example' };
    const signIn = async (browser: Browser, wish: object) => {
      const begun = await browser.post('/oidc', wish);
      const { pathname, search } = new URL(await successor.follow(begun.json.url));
      const back = await browser.get(pathname.replace('/console/api', '') + search);
      await browser.get('/account');
      return new URL(back.headers.get('location')!).searchParams.get('error');
    };
    const browser = openBrowser(moved);
    for (const wish of [{}, { token: await invite() }]) expect(await signIn(browser, wish)).toBeTruthy();
    expect(browser.account!.user).toBeNull();
    expect(moved.logLines.some((line) => line.includes('another issuer'))).toBe(true);
    // Someone else of the new provider joins.
    successor.next = { ...ida, sub: 'new', email: 'new@example.com' };
    expect(await signIn(browser, { token: await invite() })).toBeNull();
    expect(browser.account!.user!.name).toBe('Ida');
  } finally {
    await moved.stop();
    await successor.close();
  }
});

test('the callback never redirects to another site', async () => {
  for (const returnTo of [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/console@evil.example',
    '/console/..//evil.example',
    '/elsewhere',
    'javascript:alert(1)',
  ]) {
    const answer = await openBrowser(service).post('/oidc', { returnTo });
    if (answer.status === 400) continue;
    // Allowed if it stays within our own origin.
    const browser = openBrowser(service);
    provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };
    expect((await signInByProvider(browser, { returnTo })).origin, returnTo).toBe(new URL(service.setupLink!).origin);
  }
  const back = await openBrowser(service).get('/auth/callback/oidc?error=x&state=y');
  expect(new URL(back.headers.get('location')!).origin).toBe(new URL(service.setupLink!).origin);
});

test.each(['verifications', 'accounts', 'sign_ins'])(
  'a database that is unavailable during the callback (%s) is reported as such, not as a failed sign-in',
  async (table) => {
    provider.next = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' };
    const browser = openBrowser(service);
    const begun = await browser.post('/oidc', {});
    const { pathname, search } = new URL(await provider.follow(begun.json.url));
    await service.db.query(raw(`alter table ${table} rename to away`));
    const answer = await browser.get(pathname.replace('/console/api', '') + search);
    await service.db.query(raw(`alter table away rename to ${table}`));
    expect(asProblem(answer)).toMatchObject({ status: 503, code: 'unavailable' });
    expect(answer.headers.get('retry-after')).toBe('1');
  },
);

test.each(['/.well-known/openid-configuration', '/token'])(
  'a provider that does not respond to %s is given up after 15 s, and asked again by the next sign-in',
  async (path) => {
    const silent = await startOidcProvider();
    const clock = createManualClock(new Date());
    const second = await startTestService({ database: service.database, clock, config: configOf(silent) });
    const start = () => openBrowser(second).post('/oidc', {});
    async function comeBackToSecond() {
      const browser = openBrowser(second);
      const { url } = (await browser.post('/oidc', {})).json;
      const { pathname, search } = new URL(await silent.follow(url));
      return browser.get(pathname.replace('/console/api', '') + search);
    }
    try {
      silent.silentAt = path;
      const asked = silent.silence();
      const answer = path === '/token' ? comeBackToSecond() : start();
      await asked;
      await clock.advance(15_000);
      expect(asProblem(await answer)).toMatchObject({ status: 503, code: 'unavailable' });
      silent.silentAt = undefined;
      expect((await comeBackToSecond()).status).toBe(302);
    } finally {
      await silent.close();
      await second.stop();
    }
  },
);

test('an unreachable provider is tried again at the next sign-in', async () => {
  const away = await startOidcProvider();
  const issuer = away.issuer;
  await away.close();
  const second = await startTestService({
    database: service.database,
    config: { ...configOf(provider), oidcIssuer: issuer, oidcName: 'Away' },
  });
  const browser = openBrowser(second);
  expect((await browser.post('/sign_in', { email: 'mara@example.com', password })).status).toBe(200);
  const answer = await openBrowser(second).post('/oidc', {});
  expect(asProblem(answer).code).toBe('unavailable');
  await second.stop();
});
