import { type Scope, scopes, scopesOfPermission } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { type KeyReach, reachSentence, reachWarnings, reachWords } from './reach.ts';

const key = (fields: Partial<KeyReach>): KeyReach => ({
  scopes: [],
  agents: null,
  environments: null,
  allowedIps: null,
  expires: null,
  ...fields,
});

test('the sentence says what the key can do, and where, from where and until when', () => {
  const own: [Scope[], string][] = [
    [['sessions:run', 'sessions:read'], 'Can run and read sessions.'],
    [['sessions:run'], 'Can run sessions.'],
    [['sessions:run', 'approvals:decide'], 'Can run sessions and decide approvals.'],
    [['sessions:read', 'approvals:decide'], 'Can read sessions and decide approvals.'],
    [['workers:run'], 'Can run worker turns.'],
    [
      ['sessions:read', 'sessions:run', 'usage:read', 'agents:write', 'schedules:write'],
      'Can run sessions, read sessions and usage, and change agents and schedules.',
    ],
    [['keys:manage'], 'Can manage API keys.'],
    [[], 'Can do nothing.'],
  ];
  for (const [scopes, expected] of own) expect(reachSentence(key({ scopes }))).toBe(expected);
  expect(
    reachSentence({
      scopes: ['sessions:run', 'sessions:read'],
      agents: ['Support'],
      environments: ['production'],
      allowedIps: ['203.0.113.0/24'],
      expires: '1 March 2027',
    }),
  ).toBe('Can run and read sessions of the agent Support in production, from 203.0.113.0/24, until 1 March 2027.');
  expect(
    reachSentence(key({ scopes: ['approvals:decide'], agents: ['A', 'B'], environments: ['staging', 'qa'] })),
  ).toBe('Can decide approvals of the agents A and B in staging and qa.');
});

test('a permission is said in full, however its scopes were given', () => {
  const sentenceOf = (scopes: Iterable<Scope>, limits: Partial<KeyReach> = {}) =>
    reachSentence(key({ scopes: [...scopes], ...limits }));
  expect(sentenceOf(scopesOfPermission.read)).toBe('Can read everything except API keys and secrets.');
  expect(sentenceOf(scopesOfPermission.write)).toBe(
    'Can do everything except manage API keys, secrets and the organization.',
  );
  expect(sentenceOf(scopes.toReversed(), { expires: 'tomorrow' })).toBe('Can do everything, until tomorrow.');
});

test('the words in the list are short for a permission, and leave out what other columns say', () => {
  const wordsOf = (scopes: Iterable<Scope>, limits: Partial<KeyReach> = {}) =>
    reachWords(key({ scopes: [...scopes], ...limits }));
  expect(wordsOf(scopesOfPermission.read)).toBe('Read all but keys and secrets');
  expect(wordsOf(scopesOfPermission.write)).toBe('Everything but admin tasks');
  expect(wordsOf(scopes, { expires: 'tomorrow', allowedIps: ['203.0.113.7'] })).toBe('Everything, from 203.0.113.7');
  expect(wordsOf(['sessions:run', 'sessions:read'], { agents: ['Support'] })).toBe(
    'Run and read sessions of the agent Support',
  );
  expect(wordsOf([])).toBe('Nothing');
});

test('a scope that the limits of the key leave no use for is not in the sentence', () => {
  expect(reachSentence(key({ scopes: ['keys:manage', 'sessions:read'], agents: ['A'] }))).toBe(
    'Can read sessions of the agent A.',
  );
  expect(reachSentence(key({ scopes: ['agents:write'], environments: ['qa'] }))).toBe('Can do nothing.');
  expect(reachSentence(key({ scopes: ['sessions:run'], agents: [] }))).toBe('Can do nothing.');
  expect(reachSentence(key({ scopes, agents: ['A'], environments: ['qa'] }))).toBe(
    'Can run sessions and worker turns, read sessions, agents, usage and the event log, decide approvals, and change schedules of the agent A in qa.',
  );
});

test('every scope is in a sentence', () => {
  for (const scope of scopes) expect(reachSentence(key({ scopes: [scope] }))).not.toBe('Can do nothing.');
});

test('a key that can run and decide is warned about, and one that can run and change agents', () => {
  const warned = (...scopes: Scope[]) => reachWarnings(key({ scopes })).map((text) => text.slice(0, 40));
  const decides = ['The key can both run sessions and decide'];
  for (const scope of ['sessions:run', 'schedules:write', 'workers:run'] as const) {
    expect(warned(scope, 'approvals:decide')).toEqual(decides);
    expect(warned(scope)).toEqual([]);
  }
  expect(warned(...scopesOfPermission.write)).toEqual(decides);
  expect(warned(...scopesOfPermission.read, 'approvals:decide')).toEqual([]);
  expect(warned('sessions:run', 'agents:write')).toEqual(['The key can run sessions and change agen']);
  expect(reachWarnings(key({ scopes: ['sessions:run', 'agents:write'], environments: ['qa'] }))).toEqual([]);
});
