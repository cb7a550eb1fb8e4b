import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CannotOpen, createVault, openUnderCredential, sealUnderCredential } from './vault.ts';

const key = randomBytes(32);
const place = ['org_1', 'production', 'TOKEN'];

test('what was sealed opens with the same key at the same place', () => {
  const vault = createVault([key]);
  expect(vault.open('environment_secret', place, vault.seal('environment_secret', place, 'geheim ✓'))).toBe('geheim ✓');
});

test('a sealed value does not open elsewhere, for another purpose, with another key, or changed', () => {
  const vault = createVault([key]);
  const sealed = vault.seal('environment_secret', place, 'secret');
  const changed = Buffer.from(sealed);
  changed[changed.length - 1]! ^= 1;
  expect(() => vault.open('environment_secret', ['org_1', 'staging', 'TOKEN'], sealed)).toThrow(CannotOpen);
  expect(() => vault.open('signing_secret', place, sealed)).toThrow(CannotOpen);
  expect(() => vault.open('environment_secret', place, changed)).toThrow(CannotOpen);
  expect(() => vault.open('environment_secret', place, sealed.subarray(0, 20))).toThrow(CannotOpen);
  expect(() => createVault([randomBytes(32)]).open('environment_secret', place, sealed)).toThrow(CannotOpen);
});

test('an older key listed after the new one still opens what it sealed, and seals nothing more', () => {
  const sealed = createVault([key]).seal('signing_secret', place, 'secret');
  const both = createVault([randomBytes(32), key]);
  expect(both.open('signing_secret', place, sealed)).toBe('secret');
  expect(() => createVault([key]).open('signing_secret', place, both.seal('signing_secret', place, 'new'))).toThrow(
    CannotOpen,
  );
});

test('the same text sealed twice does not look the same', () => {
  const vault = createVault([key]);
  const [a, b] = [vault.seal('signing_secret', place, 'x'), vault.seal('signing_secret', place, 'x')];
  expect(a.equals(b)).toBe(false);
});

test('what is sealed under a credential opens with that credential alone', () => {
  const sealed = sealUnderCredential('sbk_one', place, 'secret');
  expect(openUnderCredential('sbk_one', place, sealed)).toBe('secret');
  expect(() => openUnderCredential('sbk_two', place, sealed)).toThrow(CannotOpen);
});
