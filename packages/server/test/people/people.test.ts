// People at the console: from the first link, through what each role may do, to how access ends.
import { type Role, type Route, roles, routes, scopesOf, scopesOfPermission, scopesOfRole } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { resetPasswordOnHost } from '../../src/operator/people.ts';
import { readConsoleUrl } from '../../src/people/console-url.ts';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { idle } from '../support/idle.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { join, password, setUp } from '../support/people.ts';
import { asProblem, type RawResponse } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const idOf = (browser: Browser) => browser.account!.user!.userId;
const codeOf = (answer: RawResponse) => asProblem(answer).code;

let service: TestService;
let owner: Browser;
/** What the setup link showed to the person who followed it first. */
let looked: RawResponse;
beforeAll(async () => {
  service = await startTestService();
  const browser = openBrowser(service);
  const token = tokenOf(service.setupLink!);
  looked = await browser.post('/links/look', { token });
  const unnamed = await browser.post('/links/accept', { token, name: 'M', email: 'm@example.com', password });
  expect(codeOf(unnamed)).toBe('invalid_request');
  owner = await setUp(service);
});
afterAll(() => service.stop());

test('the first person uses the setup link, names the organization and owns it', async () => {
  expect(looked.json.link).toMatchObject({
    type: 'setup',
    organizationName: 'My organization',
    role: 'owner',
    email: null,
    name: null,
  });
  expect((await openBrowser(service).get('/account')).json).toMatchObject({
    user: null,
    csrfToken: null,
    organizations: [],
  });
  expect(owner.account).toMatchObject({
    user: { userId: expect.stringMatching(/^usr_/), name: 'Mara', email: 'mara@example.com' },
    csrfToken: expect.any(String),
    organizations: [{ organizationId: service.organizationId, name: 'Acme', role: 'owner', permission: 'admin' }],
  });
  expect((await owner.get('/account')).json).toEqual(owner.account);
  const { user } = owner.account!;
  expect((await owner.api('GET', '/me')).json).toEqual({
    organization: { organizationId: service.organizationId, name: 'Acme' },
    apiKey: null,
    user,
    permission: 'admin',
    scopes: [...scopesOfPermission.admin],
  });
});

test('the event log has the person as the actor of what they do', async () => {
  const { apiKey } = (await owner.api('POST', '/api_keys', { name: 'First', permission: 'admin' })).json;
  expect((await service.clientWith(apiKey.secret).me()).apiKey?.name).toBe('First');
  const actor = { type: 'user', id: idOf(owner), name: 'Mara' };
  const { data } = await service.client.events.list({ actorId: idOf(owner) });
  expect(data.map(({ type }) => type).toSorted()).toEqual([
    'api_key.created',
    'organization.updated',
    'user.joined',
    'user.signed_in',
  ]);
  expect(data.map((event) => event.actor)).toEqual(data.map(() => actor));
  expect(data[0]!.context).toMatchObject({ requestId: expect.any(String), ipAddress: '127.0.0.1' });
});

test('an idempotency key of a person repeats the first response, with the secret only for the same sign-in', async () => {
  const other = openBrowser(service);
  await other.post('/sign_in', { email: 'mara@example.com', password });
  const create = (browser: Browser) =>
    browser.api('POST', '/invitations', { role: 'viewer' }, { 'idempotency-key': 'once' });
  const [first, second, third] = [await create(owner), await create(owner), await create(other)];
  expect(second.json).toEqual(first.json);
  expect(second.headers.get('idempotent-replayed')).toBe('true');
  expect(third.json).toEqual({ invitation: first.json.invitation });
  tokenOf(first.json.link);
  await owner.client().invitations.delete(first.json.invitation.invitationId);
});

test('the console’s URL is stored for links that are created on the host', async () => {
  expect((await readConsoleUrl(service.db))?.origin).toBe(new URL(service.setupLink!).origin);
});

test('a member is not invited again, whatever the role and the spelling of the email', async () => {
  const again = owner.client().invitations.create({ role: 'viewer', email: 'MARA@example.com' });
  await expect(again).rejects.toMatchObject({ code: 'conflict', detail: expect.stringContaining('as owner') });
});

describe('roles', () => {
  const people = new Map<Role, Browser>();
  beforeAll(async () => {
    for (const role of roles)
      people.set(role, role === 'owner' ? owner : await join(owner, service, `R-${role}`, role));
  });

  test.each(
    roles.flatMap((role) =>
      Object.entries<Route>(routes).map(([name, route]): [Role, string, Route] => [role, name, route]),
    ),
  )('%s: %s', async (role, _, route) => {
    const browser = people.get(role)!;
    const path = route.path.replaceAll(/\{(\w+)\}/g, 'none');
    const may = scopesOf(route).every((scope) => scopesOfRole[role].has(scope));
    // No request has an effect: one that is refused for its form has passed the permission check.
    const answer = await browser.api(
      route.method,
      `${path}?limit=none`,
      route.method === 'GET' ? undefined : { none: 1 },
    );
    if (may && route.byKey) expect(asProblem(answer)).toMatchObject({ status: 403, code: 'api_key_required' });
    else if (may) expect([400, 404]).toContain(answer.status);
    else expect(asProblem(answer)).toMatchObject({ status: 403, code: 'insufficient_permission' });
  });

  test('only an owner adds, changes and removes owners, and the last owner stays', async () => {
    const admin = people.get('admin')!;
    const [client, byOwner] = [admin.client(), owner.client()];
    const denied = { status: 403, code: 'insufficient_permission' };
    await expect(client.invitations.create({ role: 'owner' })).rejects.toMatchObject(denied);
    await expect(client.members.update(idOf(admin), { role: 'owner' })).rejects.toMatchObject(denied);
    await expect(client.members.update(idOf(owner), { role: 'admin' })).rejects.toMatchObject(denied);
    await expect(client.members.remove(idOf(owner))).rejects.toMatchObject(denied);
    await expect(client.members.resetPassword(idOf(owner))).rejects.toMatchObject(denied);
    const last = { status: 409, code: 'last_owner' };
    await expect(byOwner.members.update(idOf(owner), { role: 'viewer' })).rejects.toMatchObject(last);
    await expect(byOwner.members.remove(idOf(owner))).rejects.toMatchObject(last);
    expect(await client.members.update(idOf(people.get('viewer')!), { role: 'member' })).toMatchObject({
      role: 'member',
    });
    expect((await people.get('viewer')!.get('/account')).json.organizations).toMatchObject([
      { role: 'member', permission: 'write' },
    ]);
    expect(await client.members.update(idOf(people.get('viewer')!), { role: 'viewer' })).toMatchObject({
      role: 'viewer',
    });
  });

  test('two owners who remove each other at the same instant leave one', async () => {
    const second = await join(owner, service, 'Otto', 'owner');
    const first = await join(owner, service, 'Olga', 'owner');
    await owner.client().members.update(idOf(owner), { role: 'admin' });
    const answers = await Promise.all([
      first.api('DELETE', `/members/${idOf(second)}`),
      second.api('DELETE', `/members/${idOf(first)}`),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const left = answers[0]!.status === 200 ? first : second;
    await left.client().members.update(idOf(owner), { role: 'owner' });
    await owner.client().members.remove(idOf(left));
  });

  test('the people of the organization are listed in pages, with their last activity', async () => {
    const client = owner.client();
    const found = [];
    for await (const member of client.members.list({ limit: 2 })) found.push(member);
    expect(found.map(({ role }) => role).toSorted()).toEqual(['admin', 'approver', 'member', 'owner', 'viewer']);
    expect(found.every(({ lastSignedInAt }) => lastSignedInAt !== null)).toBe(true);
    const { invitation } = await client.invitations.create({ role: 'viewer', email: 'New@example.com', name: 'N' });
    expect(invitation).toMatchObject({ email: 'new@example.com', name: 'N', invitedBy: 'Mara' });
    expect((await client.invitations.list()).data).toEqual([invitation]);
    const { invitation: second } = await client.invitations.create({ role: 'member' });
    const listed = [];
    for await (const one of client.invitations.list({ limit: 1 })) listed.push(one);
    expect(listed).toEqual([second, invitation]);
    await client.invitations.delete(second.invitationId);
    await client.invitations.delete(invitation.invitationId);
    await expect(client.invitations.delete(invitation.invitationId)).rejects.toMatchObject({ status: 404 });
    expect(await client.organization.update({ name: 'Acme & Co' })).toMatchObject({ name: 'Acme & Co' });
    expect(await client.organization.update({ name: 'Acme & Co' })).toMatchObject({ name: 'Acme & Co' });
  });

  test('an approval names the person who resolved it', async () => {
    const { agentId } = await service.client.agents.create({
      name: 'Asks',
      model: {
        provider: 'scripted',
        model: 'x',
        settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'ok' }] },
      },
      instructions: '',
      tools: [
        { type: 'client', name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, approval: 'always' },
      ],
    });
    const member = people.get('member')!.client();
    const { sessionId } = await member.sessions.open({ agentId, environment: 'production', input: 'go' });
    for await (const { chunks } of member.sessions.stream(sessionId)) {
      const asked = chunks.find((chunk) => chunk.type === 'approval.requested');
      if (asked?.type !== 'approval.requested') continue;
      const approval = await member.approvals.approve(asked.operationId);
      expect(approval.resolvedBy).toMatchObject({ type: 'user', id: idOf(people.get('member')!), name: 'R-member' });
      break;
    }
    await member.sessions.cancel(sessionId);
  });
});

describe('a sign-in ends', () => {
  /** Resolves when the stream that it opened has ended. */
  async function openStream(browser: Browser, at = service): Promise<{ ended: Promise<void> }> {
    const { agentId } = await at.client.agents.create({
      name: 'Idle',
      model: { provider: 'scripted', model: 'x', settings: { script: [{ text: 'ok' }] } },
      instructions: '',
    });
    const { sessionId } = await at.client.sessions.open({ agentId, environment: 'production' });
    const response = await fetch(`${at.url}/api/v1/sessions/${sessionId}/stream`, {
      headers: { cookie: browser.cookieHeader(), 'x-signalbox-organization': at.organizationId },
    });
    expect(response.status).toBe(200);
    return {
      ended: response.text().then(
        () => {},
        () => {},
      ),
    };
  }

  test('when the person is removed: their streams end at once', async () => {
    // The clock does not advance, so the check of every 30 seconds ends nothing.
    const still = await startTestService({ clock: createManualClock() });
    const first = await setUp(still);
    const gone = await join(first, still, 'Gero');
    const { ended } = await openStream(gone, still);
    await first.client().members.remove(idOf(gone));
    await ended;
    await still.stop();
  });

  test('when the person is removed: their account is deleted', async () => {
    const gone = await join(owner, service, 'Gero');
    await owner.client().members.remove(idOf(gone));
    expect(codeOf(await gone.api('GET', '/me'))).toBe('signed_out');
    expect(codeOf(await gone.post('/sign_in', { email: 'gero@example.com', password }))).toBe('sign_in_failed');
    expect(await service.db.query(sql`select 1 from users where email = 'gero@example.com'`)).toEqual([]);
  });

  test('during a long poll, which then returns nothing to a removed person', async () => {
    const clock = createManualClock();
    const waited = await startTestService({ clock });
    const first = await setUp(waited);
    const gone = await join(first, waited, 'Gero');
    const { data } = await first.client().events.list({ limit: 1 });
    const poll = gone.api('GET', `/events?order=asc&wait=20&afterSequence=${data[0]!.sequence}`);
    await idle();
    await first.client().members.remove(idOf(gone));
    expect(codeOf(await clock.passWhile(poll))).toBe('signed_out');
    await waited.stop();
  });

  test('on one browser or everywhere, with its streams', async () => {
    const here = await join(owner, service, 'Ines');
    const there = openBrowser(service);
    await there.post('/sign_in', { email: 'ines@example.com', password });
    const { signIns, ways } = (await here.get('/sign_ins')).json;
    expect(signIns.map(({ isThis }: { isThis: boolean }) => isThis)).toEqual([false, true]);
    expect(ways).toEqual({ password: true, provider: false, passkeys: 0 });
    const { ended } = await openStream(there);
    await here.post('/sign_out');
    expect((await there.api('GET', '/me')).status).toBe(200);
    await here.post('/sign_in', { email: 'ines@example.com', password });
    await here.post('/sign_out', { everywhere: true });
    await ended;
    expect(codeOf(await there.api('GET', '/me'))).toBe('signed_out');
    await here.post('/sign_in', { email: 'ines@example.com', password });
    await there.post('/sign_in', { email: 'ines@example.com', password });
    const [other] = (await here.get('/sign_ins')).json.signIns;
    expect((await here.post('/sign_ins/end', { signInId: other.signInId })).status).toBe(200);
    expect(codeOf(await there.api('GET', '/me'))).toBe('signed_out');
    expect(codeOf(await here.post('/sign_ins/end', { signInId: other.signInId }))).toBe('not_found');
  });

  test('on every node when the password changes, by the person or by an admin’s link', async () => {
    const second = await startTestService({ database: service.database });
    const here = await join(owner, service, 'Nora');
    const there = openBrowser(second);
    await there.post('/sign_in', { email: 'nora@example.com', password });
    expect((await there.api('GET', '/me')).status).toBe(200);
    const next = 'nine slow green trains';
    expect(codeOf(await here.post('/password', { currentPassword: 'another one', newPassword: next }))).toBe(
      'sign_in_failed',
    );
    expect((await here.post('/password', { currentPassword: password, newPassword: next })).status).toBe(200);
    expect((await here.api('GET', '/me')).status).toBe(200);
    expect(codeOf(await there.api('GET', '/me'))).toBe('signed_out');

    const { link } = await owner.client().members.resetPassword(idOf(here));
    const token = tokenOf(link!);
    expect((await there.post('/links/look', { token })).json.link).toMatchObject({
      type: 'passwordReset',
      organizationName: 'Acme & Co',
      name: 'Nora',
      email: 'nora@example.com',
    });
    expect((await there.post('/links/accept', { token, password })).json.user.name).toBe('Nora');
    expect(codeOf(await here.api('GET', '/me'))).toBe('signed_out');
    expect(codeOf(await there.post('/links/accept', { token, password }))).toBe('link_invalid');
    expect((await openBrowser(service).post('/sign_in', { email: 'nora@example.com', password })).status).toBe(200);
    await second.stop();
  });
});

describe('several organizations', () => {
  test('a person creates another one, and each has its own data', async () => {
    const paul = await join(owner, service, 'Paul', 'admin');
    const founded = await paul.post('/organizations', { name: 'Paul’s' });
    expect(founded.status).toBe(201);
    const [acme, own] = paul.account!.organizations;
    expect([acme!.role, own!.role]).toEqual(['admin', 'owner']);
    const inOwn = { 'x-signalbox-organization': own!.organizationId };
    expect((await paul.client(own!.organizationId).members.list()).data.map(({ name }) => name)).toEqual(['Paul']);
    expect(codeOf(await paul.api('DELETE', `/members/${idOf(owner)}`, undefined, inOwn))).toBe('not_found');
    // An organization of others and one that does not exist get the same response.
    const [strange, none] = await Promise.all(
      [own!.organizationId, own!.organizationId.replace(/.{6}$/, '000000')].map((id) =>
        owner.api('GET', '/me', undefined, { 'x-signalbox-organization': id }),
      ),
    );
    expect([strange!.json.detail, strange!.status]).toEqual([none!.json.detail, none!.status]);
    expect(strange!.status).toBe(403);
    for (const wrong of [undefined, '', 'org_1']) {
      expect(codeOf(await owner.api('GET', '/me', undefined, { 'x-signalbox-organization': wrong }))).toBe(
        'invalid_request',
      );
    }
    // Otherwise an admin of one could create a link to what the person has in the other.
    await expect(owner.client().members.resetPassword(idOf(paul))).rejects.toMatchObject({ status: 403 });
    const events = await paul.client(own!.organizationId).events.list({ order: 'asc' });
    expect(events.data.map(({ type }) => type)).toEqual(['organization.created', 'user.joined']);
    await paul.post('/sign_out');
    await paul.post('/sign_in', { email: 'paul@example.com', password });
    const after = await paul.client(own!.organizationId).events.list();
    expect(after.data.slice(0, 2).map(({ type }) => type)).toEqual(['user.signed_in', 'user.signed_out']);
    await owner.client().members.remove(idOf(paul));
    expect((await paul.get('/account')).json.organizations.map(({ name }: { name: string }) => name)).toEqual([
      'Paul’s',
    ]);
  });

  test('can be created only by admins and owners: otherwise it would bypass a person’s role', async () => {
    for (const role of ['viewer', 'member']) {
      const limited = await join(owner, service, `Limited-${role}`, role);
      expect(codeOf(await limited.post('/organizations', { name: 'Mine' }))).toBe('insufficient_permission');
    }
  });

  test('on the host, the operator restores access for a person in several organizations', async () => {
    const ravi = await join(owner, service, 'Ravi', 'admin');
    await ravi.post('/organizations', { name: 'Ravi’s' });
    await expect(owner.client().members.resetPassword(idOf(ravi))).rejects.toMatchObject({ status: 403 });
    const config = readConfig(
      { 'public-url': 'https://signalbox.example.com' },
      { DATABASE_URL: service.database.url },
    );
    const organization = service.organizationId;
    const link = await resetPasswordOnHost(config, { user: 'Ravi@example.com', organization });
    expect(link).toMatch(/^https:\/\/signalbox\.example\.com\/console\/link#sbr_/);
    const next = 'nine slow green trains';
    expect((await openBrowser(service).post('/links/accept', { token: tokenOf(link), password: next })).status).toBe(
      200,
    );
    expect(codeOf(await ravi.api('GET', '/me'))).toBe('signed_out');
    await expect(resetPasswordOnHost(config, { user: 'Ravi@example.com' })).rejects.toThrow('--organization');
    await expect(resetPasswordOnHost(config, { user: 'nobody', organization })).rejects.toThrow(
      'There is no user nobody',
    );
  });

  test('a password reset link becomes invalid if the person joins another organization', async () => {
    const quin = await join(owner, service, 'Quin', 'admin');
    const { link } = await owner.client().members.resetPassword(idOf(quin));
    await quin.post('/organizations', { name: 'Quin’s' });
    expect(codeOf(await openBrowser(service).post('/links/accept', { token: tokenOf(link!), password }))).toBe(
      'link_invalid',
    );
  });

  test('a signed-in person accepts with the link alone; a known person has to sign in first', async () => {
    const rita = await join(owner, service, 'Rita', 'admin');
    await rita.post('/organizations', { name: 'Rita’s' });
    const own = rita.account!.organizations[1]!.organizationId;
    const { link } = (await rita.api('POST', '/invitations', { role: 'viewer' }, { 'x-signalbox-organization': own }))
      .json;
    const token = tokenOf(link);
    const again = { token, name: 'M', email: 'MARA@example.com', password };
    expect(codeOf(await openBrowser(service).post('/links/accept', again))).toBe('email_taken');
    expect(codeOf(await owner.post('/links/accept', { token }, { 'x-signalbox-csrf': 'x' }))).toBe('csrf_refused');
    const accepted = await owner.post('/links/accept', { token });
    expect(accepted.json.organizations.map(({ role }: { role: string }) => role)).toEqual(['owner', 'viewer']);
    const foreign = (
      await rita.api(
        'POST',
        '/invitations',
        { role: 'viewer', email: 'x@example.com' },
        { 'x-signalbox-organization': own },
      )
    ).json;
    expect(codeOf(await owner.post('/links/accept', { token: tokenOf(foreign.link) }))).toBe('conflict');
    const known = (await rita.api('POST', '/invitations', { role: 'viewer' }, { 'x-signalbox-organization': own }))
      .json;
    expect(codeOf(await owner.post('/links/accept', { token: tokenOf(known.link) }))).toBe('conflict');
  });
});

test('guesses of the current password are in the event log too', async () => {
  const guessed = await join(owner, service, 'Guessed', 'member');
  const refused = await guessed.post('/password', {
    currentPassword: 'none of these',
    newPassword: 'a quite new sentence',
  });
  expect(codeOf(refused)).toBe('sign_in_failed');
  const failures = async () =>
    (await owner.client().events.list({ type: 'user.sign_in_failed' })).data.map(({ resource }) => resource.id);
  await expect.poll(failures).toContain(idOf(guessed));
});
