// Passkeys, and the tables that better-auth requires.
import { getMigrations } from 'better-auth/db/migration';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIdentityPool } from '../../src/db/identity-pool.ts';
import { configureAuth } from '../../src/people/better-auth.ts';
import { type Authenticator, createAuthenticator } from '../support/authenticator.ts';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { join, password, setUp } from '../support/people.ts';
import { asProblem, type RawResponse } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let owner: Browser;
let origin: string;
beforeAll(async () => {
  service = await startTestService();
  origin = new URL(service.setupLink!).origin;
  owner = await setUp(service);
});
afterAll(() => service.stop());

async function addPasskey(browser: Browser, authenticator: Authenticator, name = 'Laptop'): Promise<RawResponse> {
  const options = await browser.get('/auth/passkey/generate-register-options');
  expect(options.status, options.text).toBe(200);
  return browser.post('/auth/passkey/verify-registration', { response: authenticator.register(options.json), name });
}

async function signInBy(authenticator: Authenticator, browser = openBrowser(service)): Promise<RawResponse> {
  const options = await browser.get('/auth/passkey/generate-authenticate-options');
  const answer = await browser.post('/auth/passkey/verify-authentication', {
    response: authenticator.authenticate(options.json),
  });
  await browser.get('/account');
  return answer;
}

test('a person adds a passkey, signs in with it alone, and removes it', async () => {
  const authenticator = createAuthenticator(origin);
  expect((await addPasskey(owner, authenticator)).status).toBe(200);
  const [passkey] = (await owner.get('/auth/passkey/list-user-passkeys')).json;
  expect(passkey).toMatchObject({ name: 'Laptop', deviceType: 'singleDevice' });
  const browser = openBrowser(service);
  const answer = await signInBy(authenticator, browser);
  // Nothing of the sign-in but its cookie.
  expect(answer.json).toEqual({ signedIn: true });
  expect(browser.account!.user).toEqual(owner.account!.user);
  expect((await browser.api('GET', '/me')).status).toBe(200);
  expect(
    asProblem(await owner.post('/auth/passkey/delete-passkey', { id: passkey.id }, { 'x-signalbox-csrf': 'x' })).code,
  ).toBe('csrf_refused');
  expect((await owner.post('/auth/passkey/delete-passkey', { id: passkey.id })).status).toBe(200);
  expect(asProblem(await signInBy(authenticator)).code).toBe('sign_in_failed');
  const events = await service.client.events.list({ order: 'asc', actorId: owner.account!.user!.userId });
  expect(events.data.map(({ type }) => type).slice(-3)).toEqual([
    'user.passkey_added',
    'user.signed_in',
    'user.passkey_removed',
  ]);
});

test('a response to another challenge, from another origin or for another host is refused', async () => {
  const authenticator = createAuthenticator(origin);
  await addPasskey(owner, authenticator);
  const browser = openBrowser(service);
  const first = (await browser.get('/auth/passkey/generate-authenticate-options')).json;
  await browser.get('/auth/passkey/generate-authenticate-options');
  const late = { response: authenticator.authenticate(first) };
  expect(asProblem(await browser.post('/auth/passkey/verify-authentication', late)).code).toBe('sign_in_failed');
  for (const wrong of [createAuthenticator('https://evil.example'), createAuthenticator(origin, 'evil.example')]) {
    expect((await addPasskey(owner, wrong)).status).toBeGreaterThanOrEqual(400);
    expect(asProblem(await signInBy(wrong)).code).toBe('sign_in_failed');
  }
  // A response can be used once.
  const again = openBrowser(service);
  const options = (await again.get('/auth/passkey/generate-authenticate-options')).json;
  const response = authenticator.authenticate(options);
  expect((await again.post('/auth/passkey/verify-authentication', { response })).status).toBe(200);
  expect(asProblem(await again.post('/auth/passkey/verify-authentication', { response })).code).toBe('sign_in_failed');
});

test('a passkey of another person can be neither seen nor removed', async () => {
  const other = await join(owner, service, 'Olaf');
  await addPasskey(owner, createAuthenticator(origin));
  const [passkey] = (await owner.get('/auth/passkey/list-user-passkeys')).json;
  expect((await other.get('/auth/passkey/list-user-passkeys')).json).toEqual([]);
  expect(asProblem(await other.post('/auth/passkey/delete-passkey', { id: passkey.id })).code).toBe('not_found');
  expect(asProblem(await openBrowser(service).get('/auth/passkey/list-user-passkeys')).code).toBe('signed_out');
});

test('setting a password by a link removes every other sign-in method, so an intruder leaves none behind', async () => {
  const ruth = await join(owner, service, 'Ruth');
  const left = createAuthenticator(origin);
  await addPasskey(ruth, left);
  await service.db.query(sql`
    insert into accounts (id, user_id, provider_id, account_id, created_at, updated_at)
    select gen_random_uuid(), id, 'oidc', 'of someone', now(), now() from users where name = 'Ruth'`);
  const { link } = await owner.client().members.resetPassword(ruth.account!.user!.userId);
  // Nothing happens until the link is used.
  expect((await signInBy(left)).status).toBe(200);
  const browser = openBrowser(service);
  expect((await browser.post('/links/accept', { token: tokenOf(link!), password: `${password} too` })).status).toBe(
    200,
  );
  expect(asProblem(await signInBy(left)).code).toBe('sign_in_failed');
  expect((await browser.get('/sign_ins')).json.ways).toEqual({ password: true, provider: false, passkeys: 0 });
});

test('a security key without a PIN, fingerprint or face is refused: someone may have found it', async () => {
  const found = createAuthenticator(origin, undefined, { verifies: false });
  expect((await addPasskey(owner, found)).status).toBe(200);
  expect(asProblem(await signInBy(found)).code).toBe('sign_in_failed');
  for (const path of ['generate-authenticate-options', 'generate-register-options']) {
    const { json } = await owner.get(`/auth/passkey/${path}`);
    expect(json.userVerification ?? json.authenticatorSelection.userVerification, path).toBe('required');
  }
});

test('signing in with a passkey ends the browser’s previous sign-in', async () => {
  const authenticator = createAuthenticator(origin);
  await addPasskey(owner, authenticator);
  const browser = await join(owner, service, 'Before');
  const before = browser.cookieHeader();
  await signInBy(authenticator, browser);
  expect(browser.account!.user!.name).toBe('Mara');
  expect((await openBrowser(service).get('/account', { cookie: before })).json.user).toBeNull();
});

test('an old sign-in adds no passkey', async () => {
  const vera = await join(owner, service, 'Vera');
  await service.db.query(sql`update sign_ins set created_at = now() - interval '25 hours'`);
  expect(asProblem(await vera.get('/auth/passkey/generate-register-options')).code).toBe('sign_in_again');
});

test('the schema has the tables that better-auth requires', async () => {
  const log = { debug() {}, warn() {} };
  const pool = createIdentityPool({ url: service.database.url, log, statementTimeoutMs: 0 });
  const { options } = configureAuth({
    pool,
    log,
    publicUrl: new URL(origin),
    key: Buffer.alloc(32),
    signInDays: 7,
    oidc: undefined,
    onSignedIn: async () => {},
    onConnected: async () => {},
    onVerified() {},
  });
  const { toBeCreated, toBeAdded } = await getMigrations(options);
  expect([toBeCreated, toBeAdded]).toEqual([[], []]);
  await pool.end();
});
