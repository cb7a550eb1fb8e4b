// Passkeys, and the tables that better-auth requires.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

async function addPasskey(
  browser: Browser,
  authenticator: Authenticator,
  more?: Parameters<Authenticator['register']>[1],
): Promise<RawResponse> {
  const options = await browser.get('/auth/passkey/generate-register-options');
  expect(options.status, options.text).toBe(200);
  const response = authenticator.register(options.json, more);
  return browser.post('/auth/passkey/verify-registration', { response, name: 'Laptop' });
}

async function signInBy(
  authenticator: Authenticator,
  browser = openBrowser(service),
  more?: Parameters<Authenticator['authenticate']>[1],
): Promise<RawResponse> {
  const options = await browser.get('/auth/passkey/generate-authenticate-options');
  const answer = await browser.post('/auth/passkey/verify-authentication', {
    response: authenticator.authenticate(options.json, more),
  });
  await browser.get('/account');
  return answer;
}

test('a person adds a passkey, signs in with it alone, and removes it', async () => {
  const authenticator = createAuthenticator(origin);
  expect((await addPasskey(owner, authenticator)).status).toBe(200);
  const [passkey] = (await owner.get('/auth/passkey/list-user-passkeys')).json;
  expect(passkey).toEqual({ id: expect.any(String), name: 'Laptop', createdAt: expect.any(String) });
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
    expect(asProblem(await addPasskey(owner, wrong)).code).toBe('invalid_request');
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
  const without = createAuthenticator(origin, undefined, { verifies: false });
  expect(asProblem(await addPasskey(owner, without)).code).toBe('invalid_request');
  const found = createAuthenticator(origin);
  await addPasskey(owner, found);
  expect(asProblem(await signInBy(found, undefined, { verifies: false })).code).toBe('sign_in_failed');
  expect((await signInBy(found)).status).toBe(200);
  for (const path of ['generate-authenticate-options', 'generate-register-options']) {
    const { json } = await owner.get(`/auth/passkey/${path}`);
    expect(json.userVerification ?? json.authenticatorSelection.userVerification, path).toBe('required');
  }
});

test('a copy of a passkey that has counted less is refused', async () => {
  const authenticator = createAuthenticator(origin);
  await addPasskey(owner, authenticator);
  await service.db.query(sql`update passkeys set counter = 1000`);
  expect(asProblem(await signInBy(authenticator)).code).toBe('sign_in_failed');
});

test('a passkey is added once, and the device gets the list of known ones', async () => {
  const authenticator = createAuthenticator(origin);
  await addPasskey(owner, authenticator);
  expect(asProblem(await addPasskey(owner, authenticator)).code).toBe('conflict');
  const { json } = await owner.get('/auth/passkey/generate-register-options');
  const passkeys = (await owner.get('/auth/passkey/list-user-passkeys')).json;
  expect(json.excludeCredentials).toHaveLength(passkeys.length);
});

test('an address in a certificate of the device is not requested', async () => {
  const requested: string[] = [];
  const list = createServer((request, response) => {
    requested.push(request.url!);
    response.end();
  });
  await new Promise<void>((resolve) => list.listen(0, '127.0.0.1', resolve));
  const revocationList = `http://127.0.0.1:${(list.address() as AddressInfo).port}/revoked`;
  const added = await addPasskey(owner, createAuthenticator(origin), { revocationList });
  expect([asProblem(added).code, requested]).toEqual(['invalid_request', []]);
  list.close();
});

test('a sign-in with a passkey that is removed meanwhile ends', async () => {
  const rosa = await join(owner, service, 'Rosa');
  const authenticator = createAuthenticator(origin);
  await addPasskey(rosa, authenticator);
  const thief = openBrowser(service);
  const [attempt] = await service.db.transaction(async (tx) => {
    await tx.query(sql`delete from passkeys where user_id = (select id from users where name = 'Rosa')`);
    const attempt = signInBy(authenticator, thief);
    const waiting = () =>
      service.db.query(sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%update passkeys%'`);
    await expect.poll(async () => (await waiting()).length).toBe(1);
    return [attempt];
  });
  expect(asProblem(await attempt).code).toBe('sign_in_failed');
  expect(thief.account!.user).toBeNull();
  expect((await rosa.get('/sign_ins')).json.signIns).toHaveLength(1);
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
    onNamed: async () => true,
    onConnected: async () => {},
    onVerified() {},
  });
  const { toBeCreated, toBeAdded } = await getMigrations(options);
  expect([toBeCreated, toBeAdded]).toEqual([[], []]);
  await pool.end();
});
