import { randomBytes } from 'node:crypto';
import { longestToken } from '@signalbox/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newUuid } from '../lib/ids.ts';
import { createVault } from '../vault/vault.ts';
import { readSessionToken, type SessionTokenClaims, secretTagOf, signSessionToken } from './session-token.ts';

const vault = createVault([randomBytes(32)]);
const claims: SessionTokenClaims = {
  organizationId: newUuid(),
  keyId: newUuid(),
  secretTag: secretTagOf(randomBytes(32)),
  sessionId: newUuid(),
  agentId: newUuid(),
  environment: 'production',
  endUser: { id: 'ü\n"🙂', name: 'Mara' },
  scopes: ['read', 'send', 'decide', 'open'],
  expiresAt: new Date('2026-01-31T09:30:00.000Z'),
};

test('a token says what was signed', () => {
  for (const change of [{}, { sessionId: null }, { endUser: null }, { endUser: { id: 'a' } }, { scopes: [] }]) {
    const wanted = { ...claims, ...change };
    expect(readSessionToken(vault, signSessionToken(vault, wanted))).toEqual(wanted);
  }
});

test('a change of any character makes a token invalid', () => {
  const token = signSessionToken(vault, claims);
  for (let at = 0; at < token.length; at += 1) {
    for (const character of 'aA0_-.') {
      if (token[at] === character) continue;
      expect(readSessionToken(vault, token.slice(0, at) + character + token.slice(at + 1))).toBeUndefined();
    }
    expect(readSessionToken(vault, token.slice(0, at))).toBeUndefined();
  }
  expect(readSessionToken(vault, `${token}A`)).toBeUndefined();
  expect(readSessionToken(vault, `${token}=`)).toBeUndefined();
});

test('no text is a token that was not signed', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String()), fc.base64String(), (body, signature) => {
      expect(readSessionToken(vault, `sbt_${body}.${signature}`)).toBeUndefined();
    }),
  );
});

test('while the master key is replaced, tokens of either key are valid; afterwards only those of the new one', () => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const older = signSessionToken(createVault([before]), claims);
  const newer = signSessionToken(createVault([after, before]), claims);
  const during = [createVault([before, after]), createVault([after, before])];
  for (const one of during) for (const token of [older, newer]) expect(readSessionToken(one, token)).toEqual(claims);
  expect(readSessionToken(createVault([after]), newer)).toEqual(claims);
  expect(readSessionToken(createVault([after]), older)).toBeUndefined();
});

test('the longest end user fits into a token, and a longer text is refused unread', () => {
  const endUser = { id: '\u0001'.repeat(200), name: '\u0001'.repeat(200) };
  const token = signSessionToken(vault, { ...claims, endUser });
  expect(token.length).toBeLessThanOrEqual(longestToken);
  expect(readSessionToken(vault, token)?.endUser).toEqual(endUser);
  const tooLong = signSessionToken(vault, { ...claims, endUser: { id: 'x'.repeat(longestToken) } });
  expect(readSessionToken(vault, tooLong)).toBeUndefined();
});
