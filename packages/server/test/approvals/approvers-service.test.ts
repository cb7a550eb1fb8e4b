// Who may decide, over HTTP: every kind of caller, against every kind of approvers. What an approval says to a caller is what happens.
import type { CreateInvitation } from '@signalbox/client';
import type { Approvers } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { join, setUp } from '../support/people.ts';
import { type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

type Call = (method: string, path: string, body?: unknown) => Promise<RawResponse>;

const rules: Record<string, Approvers> = {
  default: {},
  people: { people: true },
  owners: { roles: ['owner'] },
  approvers: { roles: ['approver'] },
  keys: { keys: true },
  end_user: { endUser: true },
  not_requester: { notRequester: true },
  people_and_end_user: { people: true, endUser: true, count: 2 },
};
const may: Record<string, string[]> = {
  viewer: [],
  approver: ['default', 'people', 'approvers', 'not_requester', 'people_and_end_user'],
  approver_here: ['default', 'people', 'approvers', 'not_requester', 'people_and_end_user'],
  approver_elsewhere: [],
  member_of_another_agent: [],
  member: ['default', 'people', 'not_requester', 'people_and_end_user'],
  owner: ['default', 'people', 'owners', 'not_requester', 'people_and_end_user'],
  requester: ['default', 'keys'],
  decider: ['default', 'keys', 'not_requester'],
  runner: [],
  endUser: ['end_user', 'people_and_end_user'],
};

let service: TestService;
let sessionId: string;
const callers: Record<string, Call> = {};
/** The operation of each tool's call. */
const ids: Record<string, string> = {};

const withSecret =
  (secret: string): Call =>
  (method, path, body) =>
    send(service.url, method, path, { key: secret, body });

beforeAll(async () => {
  service = await startTestService();
  const { client } = service;
  const owner = await setUp(service);
  callers.owner = (method, path, body) => owner.api(method, path, body);
  for (const role of ['approver', 'member', 'viewer']) {
    const browser = await join(owner, service, role, role);
    callers[role] = (method, path, body) => browser.api(method, path, body);
  }
  const requester = await client.keys.create({ name: 'requester', permission: 'write' });
  const decider = await client.keys.create({ name: 'decider', scopes: ['sessions:read', 'approvals:decide'] });
  const runner = await client.keys.create({ name: 'runner', scopes: ['sessions:read', 'sessions:run'] });
  for (const { name, secret } of [requester, decider, runner]) callers[name] = withSecret(secret!);
  const tools = Object.entries(rules).map(([name, by]) => ({
    type: 'client' as const,
    name,
    description: 'Pays.',
    inputSchema: { type: 'object' },
    approval: { policy: 'always' as const, by },
  }));
  const script = [{ toolCalls: tools.map(({ name }) => ({ name, input: {} })) }, { text: 'ok' }];
  const { agentId } = await client.agents.create({
    name: 'Payer',
    model: { provider: 'scripted', model: 'x', settings: { script } },
    tools,
  });
  const another = await client.agents.create({ name: 'Another', model: 'scripted/x' });
  const limited: [name: string, invitation: CreateInvitation][] = [
    ['approver_here', { role: 'approver', canDecide: { agents: [agentId], environments: ['production', 'staging'] } }],
    ['approver_elsewhere', { role: 'approver', canDecide: { agents: [agentId], environments: ['staging'] } }],
    ['member_of_another_agent', { role: 'member', canDecide: { agents: [another.agentId] } }],
  ];
  for (const [name, { role, canDecide }] of limited) {
    const browser = await join(owner, service, name, role, canDecide);
    callers[name] = (method, path, body) => browser.api(method, path, body);
  }
  const opened = service.clientWith(requester.secret!);
  const session = await opened.sessions.open({
    agentId,
    environment: 'production',
    endUser: { id: 'eve' },
    input: 'go',
  });
  sessionId = session.sessionId;
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'waiting')) break;
  }
  const { token } = await opened.sessions.createToken(sessionId, { scopes: ['read', 'decide'] });
  callers.endUser = withSecret(token!);
  for await (const { name, operationId } of client.approvals.list({ sessionId })) ids[name] = operationId;
  expect(Object.keys(ids).toSorted()).toEqual(Object.keys(rules).toSorted());
});
afterAll(() => service.stop());

test.each(Object.keys(may))('the list, the approval and the decision agree about the caller %s', async (who) => {
  const call = callers[who]!;
  const list = await call('GET', `/approvals?sessionId=${sessionId}`);
  expect(list.status, JSON.stringify(list.json)).toBe(200);
  for (const { name, operationId, refusal } of list.json.data) {
    const { json } = await call('GET', `/approvals/${operationId}`);
    expect(json.approval.refusal).toEqual(refusal);
    expect([name, refusal === null]).toEqual([name, may[who]!.includes(name)]);
    if (refusal === null) continue;
    for (const decision of ['approved', 'denied']) {
      const refused = await call('POST', `/approvals/${operationId}/resolve`, { decision });
      expect(refused.status).toBe(403);
      expect(refused.json.code).toBe(refusal.code);
    }
  }
  const { approval } = (await callers.owner!('GET', `/approvals/${ids.owners}`)).json;
  expect(approval).toMatchObject({ status: 'pending', decisions: [] });
});

test('a refused decision is recorded in the event log', async () => {
  const { data } = await service.client.events.list({ type: 'access.denied', limit: 100 });
  expect(data.map(({ changes }) => changes?.code?.[1])).toContain('not_an_approver');
});

test('no field of a request makes a caller another one', async () => {
  const body = { decision: 'approved', onBehalfOf: 'owner' };
  const refused = await callers.decider!('POST', `/approvals/${ids.owners}/resolve`, body);
  expect(refused.json.code).toBe('not_an_approver');
  for (const forged of [{ actor: { type: 'user' } }, { by: {} }, { decisions: [] }, { deciders: ['user:x'] }]) {
    const { status } = await callers.decider!('POST', `/approvals/${ids.default}/resolve`, { ...body, ...forged });
    expect(status).toBe(400);
  }
});

test('the end user and a person approve together, and each one twice counts once', async () => {
  const path = `/approvals/${ids.people_and_end_user}/resolve`;
  const first = await callers.endUser!('POST', path, { decision: 'approved' });
  expect(first.json.approval).toMatchObject({
    status: 'pending',
    progress: { approved: 1, required: 2 },
    // An end user does not see who else decided.
    decisions: [],
  });
  const { decisions } = await service.client.approvals.get(ids.people_and_end_user!);
  expect(decisions).toMatchObject([{ decision: 'approved', actor: { type: 'end_user', id: 'eve' } }]);
  expect((await callers.endUser!('POST', path, { decision: 'approved' })).json.code).toBe('already_decided_by_you');
  const last = await callers.member!('POST', path, { decision: 'approved' });
  expect(last.json.approval).toMatchObject({ status: 'approved', resolvedBy: { type: 'user', name: 'member' } });
});

test('a role that is lost between the view and the decision can’t decide', async () => {
  const [member] = (await callers.owner!('GET', '/members')).json.data.filter(
    ({ name }: { name: string }) => name === 'member',
  );
  const { json } = await callers.member!('GET', `/approvals/${ids.people}`);
  expect(json.approval.refusal).toBeNull();
  const changed = await callers.owner!('PATCH', `/members/${member.userId}`, { role: 'viewer' });
  expect(changed.status, JSON.stringify(changed.json)).toBe(200);
  const refused = await callers.member!('POST', `/approvals/${ids.people}/resolve`, { decision: 'approved' });
  expect(refused.json.code).toBe('insufficient_permission');
});

test.each([
  [{ people: true, roles: ['admin'] }, 'roles'],
  [{ endUser: true, notRequester: true }, 'notRequester'],
  [{ endUser: true, count: 2 }, 'count'],
  [{ keys: false }, 'keys'],
  [{ roles: ['viewer'] }, 'roles[0]'],
  [{ count: 6 }, 'count'],
])('an agent with the approvers %j is refused', async (by, field) => {
  const tool = { type: 'client', name: 'pay', description: '', inputSchema: { type: 'object' } };
  const { status, json } = await withSecret(service.adminKey)('POST', '/agents', {
    name: 'A',
    model: 'scripted/x',
    tools: [{ ...tool, approval: { policy: 'always', by } }],
  });
  expect(status).toBe(400);
  expect(json.errors[0].path).toBe(`tools[0].approval.by.${field}`);
});
