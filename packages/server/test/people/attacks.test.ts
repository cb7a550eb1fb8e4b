import { type Route, routes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import type { Tx } from '../../src/db/db.ts';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { holdHashes } from '../support/cheap-hashes.ts';
import { join, password, setUp } from '../support/people.ts';
import { asProblem, type RawResponse } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let owner: Browser;

beforeAll(async () => {
  service = await startTestService();
  owner = await setUp(service);
});
afterAll(() => service.stop());

const codeOf = async (answer: Promise<Parameters<typeof asProblem>[0]>) => asProblem(await answer).code;

describe('a change with the cookie is refused', () => {
  const create = (headers: Record<string, string | undefined>, by = owner) =>
    by.api('POST', '/environments', { name: `e${Math.random().toString(36).slice(2, 8)}` }, headers);

  test('without the CSRF token, with another one, and with that of another sign-in of the same person', async () => {
    const other = openBrowser(service);
    await other.post('/sign_in', { email: 'mara@example.com', password });
    for (const token of [undefined, '', 'x', owner.account!.csrfToken!.slice(1), other.account!.csrfToken!]) {
      expect(await codeOf(create({ 'x-signalbox-csrf': token }))).toBe('csrf_refused');
    }
    expect((await create({})).status).toBe(201);
  });

  test.each([
    ['a page of another origin', { origin: 'https://evil.example' }],
    ['a page of another port', { origin: 'http://127.0.0.1:1' }],
    ['a sandboxed page', { origin: 'null' }],
    ['what the browser calls another site', { 'sec-fetch-site': 'cross-site' }],
    ['what the browser calls another host of the site', { 'sec-fetch-site': 'same-site' }],
  ])('from %s', async (_, headers) => {
    expect(await codeOf(create(headers))).toBe('csrf_refused');
    expect(await codeOf(owner.post('/sign_out', {}, headers))).toBe('csrf_refused');
    const sign = openBrowser(service).post('/sign_in', { email: 'mara@example.com', password }, headers);
    expect(await codeOf(sign)).toBe('csrf_refused');
    expect((await owner.get('/account')).json.user.name).toBe('Mara');
  });

  test('on every route that changes anything', async () => {
    const changing = (Object.values(routes) as Route[]).filter(({ method }) => method !== 'GET');
    expect(changing.length).toBeGreaterThan(30);
    for (const { method, path } of changing) {
      for (const headers of [{ 'x-signalbox-csrf': undefined }, { origin: 'https://evil.example' }]) {
        const answer = owner.api(method, path.replaceAll(/\{\w+\}/g, 'x'), {}, headers);
        expect(await codeOf(answer), `${method} ${path}`).toBe('csrf_refused');
      }
    }
    for (const path of ['sign_in', 'sign_out', 'links/accept', 'organizations', 'password', 'sign_ins/end']) {
      // As a form on another site could: no token, no JSON, and a hidden origin.
      const answer = await fetch(`${service.url}/console/api/${path}`, {
        method: 'POST',
        headers: { cookie: owner.cookieHeader(), 'content-type': 'text/plain', origin: 'null' },
        body: '{}',
      });
      expect([answer.status, ((await answer.json()) as { code: string }).code], path).toEqual([403, 'csrf_refused']);
    }
  });

  test('reading needs no token, and the event log has the refusals', async () => {
    expect((await owner.api('GET', '/environments', undefined, { origin: undefined })).status).toBe(200);
    const denied = await service.client.events.list({ type: 'access.denied', actorId: owner.account!.user!.userId });
    expect(denied.data.map(({ changes }) => changes)).toContainEqual({ code: [null, 'csrf_refused'] });
  });
});

test('a key and the cookie at once are refused, and neither is used', async () => {
  const answer = await owner.api('GET', '/me', undefined, { authorization: `Bearer ${service.adminKey}` });
  expect(asProblem(answer).code).toBe('invalid_request');
});

test('a key can’t manage people', async () => {
  for (const call of [
    () => service.client.members.list(),
    () => service.client.invitations.create({ role: 'owner' }),
    () => service.client.organization.update({ name: 'Mine' }),
  ]) {
    await expect((async () => call())()).rejects.toMatchObject({ status: 403, code: 'person_required' });
  }
});

test('the cookie is not available to scripts and other sites, nor, over https, to other hosts', async () => {
  const accepted = await openBrowser(service).post('/sign_in', { email: 'mara@example.com', password });
  const [cookie] = accepted.headers.getSetCookie();
  expect(cookie).toMatch(/^signalbox\.session_token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/);
  const { publicUrl } = readConfig({ 'public-url': 'https://signalbox.example.com' }, {});
  const https = await startTestService({ config: { publicUrl }, database: service.database });
  const browser = openBrowser(https, { origin: 'https://signalbox.example.com' });
  const signedIn = await browser.post('/sign_in', { email: 'mara@example.com', password });
  expect(signedIn.headers.getSetCookie()[0]).toMatch(
    /^__Host-signalbox\.session_token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
  expect((await browser.api('GET', '/me')).json.user.name).toBe('Mara');
  // With https in front, the plain address behind it is a different origin.
  expect(await codeOf(browser.post('/sign_out', {}, { origin: https.url }))).toBe('csrf_refused');
  await https.stop();
});

test('a sign-in creates a new token: planted and forged ones are invalid', async () => {
  const browser = openBrowser(service);
  await browser.post('/sign_in', { email: 'mara@example.com', password });
  const planted = browser.cookieHeader();
  const again = await browser.post('/sign_in', { email: 'mara@example.com', password });
  expect(again.status).toBe(200);
  expect(browser.cookieHeader()).not.toBe(planted);
  expect((await openBrowser(service).get('/account', { cookie: planted })).json.user).toBeNull();
  const [name, value] = browser.cookieHeader().split(/=(.*)/s) as [string, string];
  const [token] = decodeURIComponent(value).split('.');
  for (const made of [token, `${token}.`, `${token}.${'A'.repeat(43)}%3D`, `x${value}`, '', 'null']) {
    const cookie = `${name}=${made}`;
    expect(await codeOf(openBrowser(service).api('GET', '/me', undefined, { cookie }))).toBe('signed_out');
  }
});

test('a wrong password and an unknown email get the same response, and guessing is slowed down', async () => {
  const victim = await join(owner, service, 'Vera');
  const attacker = openBrowser(service);
  const guess = (email: string) => attacker.post('/sign_in', { email, password: `guess ${Math.random()}` });
  const [known, unknown] = [await guess('vera@example.com'), await guess('nobody@example.com')];
  const { requestId: _, ...first } = asProblem(known);
  const { requestId: __, ...second } = asProblem(unknown);
  expect(first).toEqual(second);
  expect([...known.headers.keys()]).toEqual([...unknown.headers.keys()]);
  // All at once, so that none has ended when the next begins.
  const guesses = await Promise.all(Array.from({ length: 15 }, () => guess('Vera@example.com')));
  expect(guesses.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(5);
  const refused = await attacker.post('/sign_in', { email: 'vera@example.com', password });
  expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.any(Number)]);
  // Others are not locked out, and she stays signed in where she was.
  expect((await openBrowser(service).post('/sign_in', { email: 'mara@example.com', password })).status).toBe(200);
  expect((await victim.api('GET', '/me')).status).toBe(200);
  const failed = async () => (await service.client.events.list({ type: 'user.sign_in_failed' })).data;
  await expect.poll(failed).not.toEqual([]);
  expect((await failed()).map(({ outcome, actor }) => [outcome, actor.name])).toEqual([['denied', 'Vera']]);
});

test('a sign-in with the old password that runs while a new one is set fails', async () => {
  const sina = await join(owner, service, 'Sina');
  const next = `${password} too`;
  const waiting = (query: string) => async () => {
    const found = await service.db.query(sql`
      select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${query}`);
    return found.length;
  };
  /** Begins a sign-in with the right password, runs `act`, and lets both end. */
  async function thiefMeanwhile(old: string, act: (tx: Tx) => Promise<unknown>): Promise<Browser> {
    const thief = openBrowser(service);
    const [attempt] = await service.db.transaction(async (tx) => {
      await tx.query(sql`select 1 from users where email = 'sina@example.com' for update`);
      const answer = thief.post('/sign_in', { email: 'sina@example.com', password: old });
      await expect.poll(waiting('insert into "sign_ins"%')).toBe(1);
      await act(tx);
      return [answer];
    });
    await attempt;
    return thief;
  }
  const { link } = await owner.client().members.resetPassword(sina.account!.user!.userId);
  let reset: Promise<RawResponse> | undefined;
  const first = await thiefMeanwhile(password, async () => {
    let isOver = false;
    reset = openBrowser(service).post('/links/accept', { token: tokenOf(link!), password: next });
    void reset.then(() => (isOver = true));
    const isWaiting = waiting('select 1 from users%for update');
    await expect.poll(async () => isOver || (await isWaiting()) > 0).toBe(true);
  });
  expect((await reset!).status).toBe(200);
  expect((await first.get('/account')).json.user).toBeNull();
  const second = await thiefMeanwhile(next, (tx) =>
    tx.query(sql`
      update accounts set password = 'another'
      where user_id = (select id from users where email = 'sina@example.com')`),
  );
  expect((await second.get('/account')).json.user).toBeNull();
});

test('a password is long, not commonly used, and not derived from the person’s name or email', async () => {
  const { link } = (await owner.api('POST', '/invitations', { role: 'viewer', email: 'pia@example.com', name: 'Pia' }))
    .json;
  const token = tokenOf(link);
  const browser = openBrowser(service);
  for (const bad of ['short', 'elevenchars', 'password1234', 'aaaaaaaaaaaaaa', 'PIA@example.com', 'x'.repeat(129)]) {
    const answer = asProblem(await browser.post('/links/accept', { token, password: bad }));
    expect([answer.code, answer.errors?.[0]?.path], bad).toEqual(['invalid_request', 'password']);
  }
  expect(
    asProblem(await browser.post('/links/accept', { token, password, email: 'x@example.com' })).errors,
  ).toMatchObject([{ path: 'email' }]);
  expect((await browser.post('/links/accept', { token, password })).json.user).toMatchObject({
    name: 'Pia',
    email: 'pia@example.com',
  });
});

describe('a link', () => {
  test('that two people use at the same instant lets one in', async () => {
    const { link } = (await owner.api('POST', '/invitations', { role: 'viewer' })).json;
    const token = tokenOf(link);
    const answers = await Promise.all(
      ['one', 'two', 'three'].map((name) =>
        openBrowser(service).post('/links/accept', { token, name, email: `${name}@example.com`, password }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404, 404]);
    const people = await service.db.query(sql`select 1 from users where email like any ('{one@%,two@%,three@%}')`);
    expect(people).toHaveLength(1);
    expect(await codeOf(openBrowser(service).post('/links/look', { token }))).toBe('link_invalid');
  });

  test('that was changed, withdrawn, has expired or is of another kind opens nothing', async () => {
    const { link, invitation } = (await owner.api('POST', '/invitations', { role: 'viewer' })).json;
    const token = tokenOf(link);
    const changed = `${token.slice(0, 60)}${token[60] === 'A' ? 'B' : 'A'}${token.slice(61)}`;
    for (const bad of [changed, token.replace('sbi_', 'sbr_'), token.replace('sbi_', 'sbk_'), 'sbi_', `${token}x`]) {
      expect(await codeOf(openBrowser(service).post('/links/look', { token: bad }))).toBe('link_invalid');
    }
    expect(
      asProblem(await openBrowser(service).api('GET', '/me', undefined, { authorization: `Bearer ${token}` })).code,
    ).toBe('malformed_token');
    await service.db.query(sql`
      update invitations set expires_at = now() - interval '1 second'
      where organization_id = (select organization_id from organizations limit 1)`);
    const given = { token, name: 'Late', email: 'late@example.com', password };
    expect(await codeOf(openBrowser(service).post('/links/accept', given))).toBe('link_invalid');
    expect((await owner.client().invitations.list()).data).toEqual([]);
    expect(invitation.role).toBe('viewer');
    const second = (await owner.api('POST', '/invitations', { role: 'viewer' })).json;
    await owner.client().invitations.delete(second.invitation.invitationId);
    expect(await codeOf(openBrowser(service).post('/links/look', { token: tokenOf(second.link) }))).toBe(
      'link_invalid',
    );
  });

  test('whose creator was removed or lost the role lets no one in', async () => {
    for (const lose of ['remove', 'demote'] as const) {
      const admin = await join(owner, service, `Admin-${lose}`, 'admin');
      const victim = await join(owner, service, `Victim-${lose}`);
      const { link: back } = await admin.client().invitations.create({ role: 'admin' });
      const { link: over } = await admin.client().members.resetPassword(victim.account!.user!.userId);
      const { userId } = admin.account!.user!;
      if (lose === 'remove') await owner.client().members.remove(userId);
      else await owner.client().members.update(userId, { role: 'member' });
      for (const link of [back!, over!]) {
        expect(await codeOf(openBrowser(service).post('/links/look', { token: tokenOf(link) }))).toBe('link_invalid');
      }
    }
  });

  test('that is created while its creator is removed does not survive', async () => {
    const admin = await join(owner, service, 'Ada', 'admin');
    const waiting = async () => {
      const found = await service.db.query(sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
          and (query like '%insert into events_pending%' or query like '%from organizations%')`);
      return found.length;
    };
    const [made, removed] = await service.db.transaction(async (tx) => {
      // Both reach their record, and no further.
      await tx.query(sql`lock table events_pending in exclusive mode`);
      const creation = admin.api('POST', '/invitations', { role: 'admin' });
      await expect.poll(waiting).toBe(1);
      const removal = owner.api('DELETE', `/members/${admin.account!.user!.userId}`);
      await expect.poll(waiting).toBe(2);
      return [creation, removal].map((answer) => () => answer);
    });
    expect((await removed!()).status).toBe(200);
    const { link } = (await made!()).json;
    expect(await codeOf(openBrowser(service).post('/links/look', { token: tokenOf(link) }))).toBe('link_invalid');
  });

  test('of the first start: all that nodes print work until the first person has joined, and none afterwards', async () => {
    const first = await startTestService();
    const [second, another] = await Promise.all([
      startTestService({ database: first.database }),
      startTestService({ database: first.database }),
    ]);
    const nodes = [first, second, another];
    const look = (node: TestService) => openBrowser(first).post('/links/look', { token: tokenOf(node.setupLink!) });
    for (const node of nodes) expect((await look(node)).json.link).toMatchObject({ type: 'setup' });
    const accept = (node: TestService, name: string) => {
      const given = { token: tokenOf(node.setupLink!), name, email: `${name}@example.com`, password };
      return openBrowser(first).post('/links/accept', { ...given, organizationName: name });
    };
    const answers = await Promise.all(nodes.map((node, index) => accept(node, `person${index}`)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404, 404]);
    for (const node of nodes) expect(await codeOf(look(node))).toBe('link_invalid');
    await another.stop();
    const third = await startTestService({ database: first.database });
    expect(third.setupLink).toBeUndefined();
    await third.stop();
    await second.stop();
    await first.stop();
  });
});

describe('from many addresses', () => {
  let flooded: TestService;
  let victim: Browser;
  const from = (n: number) => ({ 'x-forwarded-for': `198.51.${n}.1` });
  beforeAll(async () => {
    flooded = await startTestService({ config: { trustProxy: ['127.0.0.1'] } });
    victim = await setUp(flooded);
  });

  test('passwords tried all at once are refused instead of queued without limit, and signed-in people are not affected', async () => {
    const endHashes = holdHashes();
    const tried = Array.from({ length: 60 }, (_, n) =>
      openBrowser(flooded).post('/sign_in', { email: `stranger${n}@example.com`, password }, from(n)),
    );
    // Two hashes at work and 40 that wait: the rest is refused while these are under way.
    const refusals: RawResponse[] = [];
    for (const answer of tried) void answer.then((response) => refusals.push(response));
    await expect.poll(() => refusals.map(({ status }) => status)).toEqual(Array(18).fill(503));
    expect((await victim.api('GET', '/me')).status).toBe(200);
    expect(refusals).toHaveLength(18);
    endHashes();
    const answers = await Promise.all(tried);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(42);
    expect(answers.find(({ status }) => status === 503)!.headers.get('retry-after')).toBe('2');
    expect((await openBrowser(flooded).post('/sign_in', { email: 'mara@example.com', password })).status).toBe(200);
  });

  test('a link leads to the console, whatever the Host header of the request', async () => {
    const forged = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' };
    const { link } = (await victim.api('POST', '/invitations', { role: 'viewer' }, forged)).json;
    expect(new URL(link).origin).toBe(new URL(flooded.setupLink!).origin);
  });

  test('invalid passkeys do not keep others from signing in with theirs', async () => {
    const attempt = (n: number) =>
      codeOf(openBrowser(flooded).post('/auth/passkey/verify-authentication', { response: {} }, from(n)));
    for (let n = 0; n < 12; n += 1) await Promise.all(Array.from({ length: 10 }, () => attempt(n)));
    expect(await attempt(99)).toBe('sign_in_failed');
    // No more at once than one address may have in progress.
    for (let n = 0; n < 10; n += 1) await Promise.all(Array.from({ length: 10 }, () => attempt(0)));
    expect(await attempt(0)).toBe('rate_limited');
  });
});

test('a sign-in while the database is unavailable does not count as a guess', async () => {
  const away = await startTestService();
  await setUp(away);
  const signIn = () => openBrowser(away).post('/sign_in', { email: 'mara@example.com', password });
  await away.db.query(sql`alter table users rename to away`);
  const refused = await Promise.all(Array.from({ length: 10 }, signIn));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
  await away.db.query(sql`alter table away rename to users`);
  expect((await signIn()).status).toBe(200);
  await away.stop();
});

test('starting sign-ins and following links is limited for an address, because each costs work', async () => {
  const alone = await startTestService();
  const begin = () => openBrowser(alone).get('/auth/passkey/generate-authenticate-options');
  const follow = () => openBrowser(alone).post('/links/look', { token: 'sbi_' });
  // No more at once than one address may have in progress.
  const answers = [];
  for (let n = 0; n < 125; n += 5) {
    answers.push(...(await Promise.all([begin(), follow(), begin(), follow(), begin()])));
  }
  expect(answers.filter(({ status }) => status === 429).length).toBe(5);
  await alone.stop();
});

test('no response can be run, framed, cached or sniffed as another type by a browser', async () => {
  for (const path of [
    '/console/api/account',
    '/console/api/none',
    '/api/v1/me',
    '/healthz',
    '/none',
    '/%',
    '/console/x',
  ]) {
    const { headers } = await fetch(service.url + path);
    expect(Object.fromEntries(headers), path).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
    });
  }
});

test('no path of better-auth is reachable', async () => {
  for (const path of [
    'sign-up/email',
    'sign-in/email',
    'get-session',
    'update-user',
    'list-sessions',
    'callback/oidc',
    'ok',
  ]) {
    expect((await owner.post(`/auth/${path}`, { email: 'x@example.com', password, name: 'x' })).status, path).toBe(404);
  }
});
