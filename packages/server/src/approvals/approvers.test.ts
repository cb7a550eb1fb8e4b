// Who may decide, for every kind of caller.
import { type Approvers, decidingRoles, type Role, roles, scopesOfRole } from '@signalbox/contract';
import { describe, expect, test } from 'vitest';
import { type DecidingLimits, noLimits } from '../people/memberships/can-decide.ts';
import { type Decider, mayDecide, personDecider } from './approvers.ts';

// A session that the backend's key opened. Sam, a member, sent it a message in the console. Ada created the backend's key and the bot's.
const requesters = ['api_key:backend', 'user:sam'];
const call = { agentId: 'refunds', environment: 'production' };
const person = (name: string, role: Role, limits: Partial<DecidingLimits> = {}) =>
  personDecider([`user:${name}`], { role, ...noLimits, ...limits });
const key = (canDecide: boolean, ...identities: string[]): Decider => ({ type: 'key', canDecide, identities });
const endUser = (canDecide: boolean): Decider => ({
  type: 'endUser',
  canDecide,
  identities: ['end_user:eve', 'api_key:backend'],
});
const callers = {
  viewer: person('vic', 'viewer'),
  approver: person('ann', 'approver'),
  member: person('mia', 'member'),
  admin: person('ada', 'admin'),
  owner: person('olaf', 'owner'),
  sender: person('sam', 'member'),
  'approver of the agent': person('a1', 'approver', { decidesAgents: ['refunds', 'returns'] }),
  'approver of another agent': person('a2', 'approver', { decidesAgents: ['returns'] }),
  'approver in the environment': person('a3', 'approver', { decidesEnvironments: ['production'] }),
  'approver in another environment': person('a4', 'approver', { decidesEnvironments: ['staging'] }),
  'approver of the agent elsewhere': person('a5', 'approver', {
    decidesAgents: ['refunds'],
    decidesEnvironments: ['staging'],
  }),
  'approver of none': person('a6', 'approver', { decidesAgents: [] }),
  'approver nowhere': person('a7', 'approver', { decidesEnvironments: [] }),
  'viewer with limits': person('v1', 'viewer', { decidesAgents: ['refunds'] }),
  bot: key(true, 'api_key:bot', 'user:ada'),
  backend: key(true, 'api_key:backend', 'user:ada'),
  'key of the sender': key(true, 'api_key:own', 'user:sam'),
  'key of the backend': key(true, 'api_key:child', 'api_key:backend', 'user:ada'),
  'key of the host': key(true, 'api_key:host'),
  'key without the scope': key(false, 'api_key:reader', 'user:ada'),
  'end user': endUser(true),
  'end user without the scope': endUser(false),
} satisfies Record<string, Decider>;

const approvers = ['approver', 'approver of the agent', 'approver in the environment'];
const people = [...approvers, 'member', 'admin', 'owner', 'sender'];
const keys = ['bot', 'backend', 'key of the sender', 'key of the backend', 'key of the host'];

const table: [name: string, by: Approvers | null, may: string[]][] = [
  ['the default', null, [...people, ...keys]],
  ['approvers that name nobody', {}, [...people, ...keys]],
  ['a count', { count: 2 }, [...people, ...keys]],
  ['people', { people: true }, people],
  ['one role', { roles: ['owner'] }, ['owner']],
  ['people who only decide', { roles: ['approver'] }, approvers],
  ['two roles', { roles: ['admin', 'owner'] }, ['admin', 'owner']],
  ['keys', { keys: true }, keys],
  ['a role and keys', { roles: ['admin'], keys: true }, ['admin', ...keys]],
  ['the end user', { endUser: true }, ['end user']],
  ['the end user and people', { endUser: true, people: true }, [...people, 'end user']],
  ['not the requester', { notRequester: true }, [...approvers, 'member', 'admin', 'owner', 'bot', 'key of the host']],
  ['people, not the requester', { people: true, notRequester: true }, [...approvers, 'member', 'admin', 'owner']],
  ['keys, not the requester', { keys: true, notRequester: true }, ['bot', 'key of the host']],
  ['members, not the requester', { roles: ['member'], notRequester: true, count: 2 }, ['member']],
];

test.each(table)('%s: exactly these callers may decide', (_, by, may) => {
  const approval = { ...call, requesters: by?.notRequester ? requesters : null, decisions: [] };
  const outcome = Object.entries(callers).map(([name, caller]) => [
    name,
    mayDecide(by, caller, approval)?.code ?? 'may',
  ]);
  const expected = Object.entries(callers).map(([name, { canDecide }]) => [
    name,
    may.includes(name) ? 'may' : canDecide ? 'not_an_approver' : 'insufficient_permission',
  ]);
  expect(outcome).toEqual(expected);
});

test('an end user never decides if requesters are excluded', () => {
  const by: Approvers = { endUser: true, notRequester: true };
  expect(mayDecide(by, callers['end user'], { ...call, requesters: [], decisions: [] })?.code).toBe('not_an_approver');
});

test('the roles that approvers can name are those that can decide at all', () => {
  const deciding = roles.filter((role) => scopesOfRole[role].has('approvals:decide'));
  expect(deciding).toEqual([...decidingRoles]);
});

describe('callers that count as one approver', () => {
  const approvedBy = (caller: Decider) => ({
    ...call,
    requesters: null,
    decisions: [{ decision: 'approved' as const, deciders: caller.identities }],
  });

  test.each([
    ['a person and the person', 'member', 'member'],
    ['a key and the key', 'bot', 'bot'],
    ['a person and a key that they created', 'admin', 'bot'],
    ['a key and the person who created it', 'bot', 'admin'],
    ['two keys of a person', 'bot', 'backend'],
    ['a key and a key that it created', 'backend', 'key of the backend'],
    ['a person and a key that their key created', 'admin', 'key of the backend'],
    ['an end user and the key of their token', 'end user', 'backend'],
  ] as const)('%s', (_, first, second) => {
    const by: Approvers = { people: true, keys: true, endUser: true, count: 2 };
    expect(mayDecide(by, callers[second], approvedBy(callers[first]))?.code).toBe('already_decided_by_you');
  });

  test.each([
    ['two people', 'member', 'owner'],
    ['a person and a key of another person', 'member', 'bot'],
    ['keys of two people', 'bot', 'key of the sender'],
    ['a key and one that the operator created on the host', 'bot', 'key of the host'],
    ['an end user and a person', 'end user', 'member'],
  ] as const)('%s count as two', (_, first, second) => {
    const by: Approvers = { people: true, keys: true, endUser: true, count: 2 };
    expect(mayDecide(by, callers[second], approvedBy(callers[first]))).toBeNull();
  });
});

test.each(Object.entries(callers))('a refusal of the caller %s says why, in a sentence', (_, caller) => {
  for (const by of [
    { roles: ['owner' as const], notRequester: true as const },
    { keys: true as const },
    { people: true as const },
  ]) {
    const refusal = mayDecide(by, caller, { ...call, requesters, decisions: [] });
    if (refusal) expect(refusal.message).toMatch(/^[A-Z].{20,}\.$/);
  }
});
