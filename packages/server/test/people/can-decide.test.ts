// What members can decide, over HTTP and on two nodes: how it is set, that nothing widens it by accident, and that it ends at once.
import { join } from 'node:path';
import type { UpdateMember } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openLastRelease } from '../../../../test/releases/last-release.ts';
import { readConfig } from '../../src/config/config.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { inviteOnHost, listUsersOnHost } from '../../src/operator/people.ts';
import { type Browser, openBrowser, tokenOf } from '../support/browser.ts';
import { join as joinAs, password, setUp } from '../support/people.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let other: TestService;
let owner: Browser;
/** The owner, on the other node. */
let there: Browser;
/** Calls `pay` once in each session. */
let payer: string;
let another: string;
beforeAll(async () => {
  service = await startTestService();
  other = await startTestService({ database: service.database });
  owner = await setUp(service);
  there = openBrowser(other);
  await there.post('/sign_in', { email: 'mara@example.com', password });
  [payer, another] = [await agent('Payer'), await agent('Another')];
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

async function agent(name: string): Promise<string> {
  const tool = { type: 'client' as const, name: 'pay', description: 'Pays.', inputSchema: { type: 'object' } };
  const script = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'ok' }];
  const model = { provider: 'scripted' as const, model: 'x', settings: { script } };
  const tools = [{ ...tool, approval: 'always' as const }];
  return (await service.client.agents.create({ name, model, tools })).agentId;
}

/** The operation of a call that waits for approval. */
async function asked(agentId = payer, environment = 'production'): Promise<string> {
  const { sessionId } = await service.client.sessions.open({ agentId, environment, input: 'go' });
  return vi.waitFor(
    async () => {
      const { data } = await service.client.approvals.list({ sessionId });
      return data[0]!.operationId;
    },
    { timeout: 30_000, interval: 50 },
  );
}

const idOf = ({ account }: Browser) => account!.user!.userId;
let joined = 0;
/** A new approver. */
async function approver(canDecide: NonNullable<UpdateMember['canDecide']>): Promise<Browser> {
  joined += 1;
  const browser = await joinAs(owner, service, `Approver${joined}`, 'approver');
  await update(browser, { canDecide });
  return browser;
}
const update = (member: Browser, change: UpdateMember) => owner.client().members.update(idOf(member), change);
const decide = (by: Browser, operationId: string, decision = 'approved') =>
  by.api('POST', `/approvals/${operationId}/resolve`, { decision });

test.each<[name: string, body: unknown, path: string]>([
  ['an agent that does not exist', { agents: ['agt_01k9xq3v7gf3pbt8zn5e6m2r4c'] }, 'canDecide.agents[0]'],
  ['an environment that does not exist', { environments: ['production', 'prodution'] }, 'canDecide.environments[1]'],
  ['what is not the id of an agent', { agents: ['Payer'] }, 'canDecide.agents[0]'],
  ['no agents at all', { agents: [] }, 'canDecide.agents'],
  ['no environments at all', { environments: [] }, 'canDecide.environments'],
  ['a limit of nothing', {}, 'canDecide'],
  ['a misspelt field', { environment: ['staging'] }, 'canDecide.environment'],
  ['a misspelt field beside another', { environments: ['staging'], agent: [] }, 'canDecide.agent'],
  ['a pattern', { environments: ['*'] }, 'canDecide.environments[0]'],
  ['true', true, 'canDecide'],
])('%s is refused with its path, for a member and in an invitation', async (_, canDecide, path) => {
  const member = await owner.api('PATCH', `/members/${idOf(owner)}`, { role: 'member', canDecide });
  const invitation = await owner.api('POST', '/invitations', { role: 'approver', canDecide });
  for (const refused of [member, invitation]) {
    expect(refused.json).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ path }] });
  }
  expect((await owner.client().invitations.list()).data).toEqual([]);
});

test('who could lift the limit has none: admins and owners are refused it, and a limited member is not promoted with it', async () => {
  const limited = await approver({ environments: ['staging'] });
  const refused = { status: 400, errors: [{ path: 'canDecide', message: expect.stringContaining('role admin') }] };
  await expect(update(limited, { role: 'admin' })).rejects.toMatchObject(refused);
  await expect(
    owner.client().invitations.create({ role: 'admin', canDecide: { agents: [payer] } }),
  ).rejects.toMatchObject(refused);
  await expect(update(owner, { canDecide: { agents: [payer] } })).rejects.toMatchObject({ status: 400 });
  expect(await update(limited, { role: 'admin', canDecide: null })).toMatchObject({ role: 'admin', canDecide: null });
  await expect(update(limited, { role: 'member', canDecide: { environments: ['nowhere'] } })).rejects.toMatchObject({
    errors: [{ path: 'canDecide.environments[0]' }],
  });
  // All of a change or none of it.
  expect((await owner.client().members.list()).data[0]).toMatchObject({ role: 'admin' });
});

test('an invitation brings the limits, each change is in the event log, and a field that is left out stays', async () => {
  const client = owner.client();
  const { invitation, link } = await client.invitations.create({
    role: 'approver',
    canDecide: { environments: ['production'] },
  });
  const limited = { agents: null, environments: ['production'] };
  expect(invitation.canDecide).toEqual(limited);
  expect((await client.invitations.list()).data).toEqual([invitation]);
  const invited = openBrowser(service);
  const given = { name: 'Ina', email: 'ina@example.com', password };
  expect((await invited.post('/links/accept', { token: tokenOf(link!), ...given })).status).toBe(200);
  const read = async () => (await client.members.list()).data.find(({ email }) => email === 'ina@example.com');
  expect(await read()).toMatchObject({ role: 'approver', canDecide: limited });

  const both = { agents: [payer], environments: ['production'] };
  expect((await update(invited, { canDecide: { agents: [payer] } })).canDecide).toEqual(both);
  expect((await update(invited, { role: 'member' })).canDecide).toEqual(both);
  expect((await update(invited, { role: 'viewer' })).canDecide).toEqual(both);
  expect(await update(invited, { role: 'approver', canDecide: { environments: null } })).toMatchObject({
    role: 'approver',
    canDecide: { agents: [payer], environments: null },
  });
  // Nothing differs.
  await update(invited, { role: 'approver', canDecide: { agents: [payer] } });
  expect((await update(invited, { canDecide: { agents: null } })).canDecide).toBeNull();
  expect(await read()).toMatchObject({ role: 'approver', canDecide: null });
  await update(invited, { canDecide: { agents: [another] } });
  await client.members.remove(idOf(invited));

  const about = await service.client.events.list({ resourceId: idOf(invited), order: 'asc', limit: 100 });
  const changes = about.data.filter(({ type }) => /role|can_decide|joined|removed/.test(type));
  expect(changes.map(({ type, changes }) => [type, changes?.role, changes?.canDecide])).toEqual([
    ['user.joined', [null, 'approver'], [null, limited]],
    ['user.can_decide_changed', undefined, [limited, both]],
    ['user.role_changed', ['approver', 'member'], undefined],
    ['user.role_changed', ['member', 'viewer'], undefined],
    ['user.role_changed', ['viewer', 'approver'], undefined],
    ['user.can_decide_changed', undefined, [both, { agents: [payer], environments: null }]],
    ['user.can_decide_changed', undefined, [{ agents: [payer], environments: null }, null]],
    ['user.can_decide_changed', undefined, [null, { agents: [another], environments: null }]],
    ['user.removed', ['approver', null], [{ agents: [another], environments: null }, null]],
  ]);
});

test('the operator invites with limits on the host, and a mistake there is refused as well', async () => {
  const config = readConfig({ 'public-url': service.url }, { DATABASE_URL: service.database.url });
  const invite = async (canDecide: { agents?: string[]; environments?: string[] }, role = 'approver') =>
    inviteOnHost(config, { role, canDecide });
  await expect(invite({ environments: ['prodution'] })).rejects.toThrow(/no "prodution"/);
  await expect(invite({ agents: ['Payer'] })).rejects.toThrow('--decides-agents');
  await expect(invite({ environments: ['staging'] }, 'owner')).rejects.toThrow(/with the role owner/);
  const accepted = await openBrowser(service).post('/links/accept', {
    token: tokenOf(await invite({ agents: [payer], environments: ['staging'] })),
    ...{ name: 'Hal', email: 'hal@example.com', password },
  });
  expect(accepted.status).toBe(200);
  const hal = (await listUsersOnHost(config, {})).find(({ name }) => name === 'Hal');
  expect(hal!.canDecide).toEqual({ agents: [payer], environments: ['staging'] });
});

test('a limited member sees every approval, which says why it is not theirs, and decides many at once only as far as the limit', async () => {
  const limited = await approver({ agents: [payer], environments: ['production'] });
  const [own, elsewhere, ofAnother] = [await asked(), await asked(payer, 'staging'), await asked(another)];
  const { data } = (await limited.api('GET', '/approvals?status=pending&limit=100')).json;
  const refusals = new Map(
    data.map((one: { operationId: string; refusal: unknown }) => [one.operationId, one.refusal]),
  );
  expect(refusals.get(own)).toBeNull();
  expect(refusals.get(elsewhere)).toMatchObject({
    code: 'not_an_approver',
    message: expect.stringContaining('staging'),
  });
  expect(refusals.get(ofAnother)).toMatchObject({ code: 'not_an_approver', message: expect.stringContaining('agent') });
  for (const id of [elsewhere, ofAnother]) {
    for (const decision of ['approved', 'denied']) {
      expect((await decide(limited, id, decision)).json).toMatchObject({ status: 403, code: 'not_an_approver' });
    }
  }
  const operationIds = [elsewhere, own, ofAnother];
  const many = await limited.api('POST', '/approvals/resolve', { operationIds, decision: 'approved' });
  expect(
    many.json.results.map(({ status, error }: { status: string; error: { code: string } }) => error?.code ?? status),
  ).toEqual(['not_an_approver', 'approved', 'not_an_approver']);
  // The key that makes agents is not limited, and neither is the owner.
  expect((await decide(owner, elsewhere)).status).toBe(200);
  await service.client.approvals.approve(ofAnother);
});

test('a limit does not widen when what it names is gone: it is then of nothing', async () => {
  await service.client.environments.create({ name: 'brief' });
  const temporary = await agent('Temporary');
  const limited = await approver({ agents: [temporary], environments: ['brief'] });
  await service.client.environments.delete('brief');
  await service.client.agents.archive(temporary);
  const member = (await owner.client().members.list()).data.find(({ userId }) => userId === idOf(limited));
  expect(member!.canDecide).toEqual({ agents: [temporary], environments: ['brief'] });
  const [id, ofAnother] = [await asked(), await asked(another, 'staging')];
  for (const one of [id, ofAnother]) expect((await decide(limited, one)).json.code).toBe('not_an_approver');
  // As rows that another program left would be read.
  await service.db.execute(sql`
    update members set decides_agents = '{}', decides_environments = null
    where organization_id = ${uuidOf('org', service.organizationId)} and user_id = ${uuidOf('usr', idOf(limited))}`);
  expect((await decide(limited, id)).json.code).toBe('not_an_approver');
  await decide(owner, id);
  await decide(owner, ofAnother);
});

test.each<[name: string, change: (member: Browser) => Promise<unknown>, code: string]>([
  [
    'limited',
    (member) => there.client().members.update(idOf(member), { canDecide: { agents: [another] } }),
    'not_an_approver',
  ],
  ['demoted', (member) => there.client().members.update(idOf(member), { role: 'viewer' }), 'insufficient_permission'],
  ['removed', (member) => there.client().members.remove(idOf(member)), 'insufficient_permission'],
])(
  'a decision that waits for its session while the member is %s on another node is refused',
  async (_, change, code) => {
    const [member, operationId] = [await approver({ environments: ['production'] }), await asked()];
    const { sessionId } = await service.client.approvals.get(operationId);
    const held = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const holding = service.db.transaction(async (tx) => {
      await tx.query(sql`
      select 1 from sessions
      where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${uuidOf('ses', sessionId)} for update`);
      held.resolve();
      await released.promise;
    });
    await held.promise;
    const deciding = decide(member, operationId);
    await expect
      .poll(
        async () =>
          service.db.query(sql`
          select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%sessions%'`),
        { timeout: 30_000 },
      )
      .toHaveLength(1);
    await change(member);
    released.resolve();
    await holding;
    expect((await deciding).json).toMatchObject({ status: 403, code });
    expect(await service.client.approvals.get(operationId)).toMatchObject({ status: 'pending', decisions: [] });
    await decide(owner, operationId);
  },
);

test('a node of the last release refuses a limited member, and can give them no role that it knows', async () => {
  const limited = await approver({ environments: ['production'] });
  const { directory } = await openLastRelease();
  const { roleIn } = await import(join(directory, 'packages/server/src/people/memberships.ts'));
  const { personDecider } = await import(join(directory, 'packages/server/src/approvals/approvers.ts'));
  const [organizationId, userId] = [uuidOf('org', service.organizationId), uuidOf('usr', idOf(limited))];
  const identities = [`user:${userId}`];
  const roleThere = () => roleIn(service.db, organizationId, userId);
  const role = await roleThere();
  expect(() => personDecider(identities, role)).toThrow(TypeError);
  await update(limited, { canDecide: null, role: 'member' });
  expect(personDecider(identities, await roleThere())).toMatchObject({ canDecide: true });
  await update(limited, { canDecide: { agents: [payer] } });
  expect(await roleThere()).toBe('limited member');
  for (const known of ['viewer', 'member', 'admin', 'owner']) {
    await expect(
      service.db.execute(sql`
        update members set role = ${known} where organization_id = ${organizationId} and user_id = ${userId}`),
    ).rejects.toThrow(/members_role_check/);
  }
  const { invitation } = await owner.client().invitations.create({ role: 'member', canDecide: { agents: [payer] } });
  await expect(
    service.db.execute(sql`
      insert into members (organization_id, user_id, role, joined_at)
      select organization_id, invitation_id, role, now() from invitations
      where organization_id = ${organizationId} and invitation_id = ${uuidOf('inv', invitation.invitationId)}`),
  ).rejects.toThrow(/members_role_check/);
});
