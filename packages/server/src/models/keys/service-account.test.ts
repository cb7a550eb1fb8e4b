import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { parseServiceAccount } from './service-account.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const ecPem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
const account = { type: 'service_account', client_email: 'agent@acme.iam.gserviceaccount.com', private_key: pem };

test('a service account’s key has Google’s address for tokens, unless it names another', () => {
  const parsed = parseServiceAccount(JSON.stringify(account), 'the secret KEY');
  expect(parsed).toMatchObject({ email: account.client_email, keyId: undefined });
  expect(parsed.tokenUrl.href).toBe('https://oauth2.googleapis.com/token');
});

test.each<[string, unknown]>([
  ['is neither an API key nor the JSON', '{"type":'],
  ['is neither an API key nor the JSON', '{}x'],
  ['is JSON whose type is not "service_account"', {}],
  ['is JSON whose type is not "service_account"', { ...account, type: 'authorized_user' }],
  ['is JSON whose type is not "service_account"', { ...account, type: 'external_account' }],
  ['has no client_email', { ...account, client_email: undefined }],
  ['has no private_key', { ...account, private_key: undefined }],
  ['has a private_key that is not an RSA key', { ...account, private_key: pem.replaceAll('\n', ' ').slice(0, 900) }],
  ['has a private_key that is not an RSA key', { ...account, private_key: ecPem }],
  ['has a token_uri that is not a URL', { ...account, token_uri: 'oauth2.googleapis.com' }],
  ['has a token_uri that is not a URL', { ...account, token_uri: 7 }],
])('a secret that %s says so, and shows none of it', (why, json) => {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  const parse = () => parseServiceAccount(text, 'the secret KEY of the environment production');
  expect(parse).toThrow(`The secret KEY of the environment production ${why}`);
  expect(parse).toThrow(/^[^{]*$/);
  expect(parse).not.toThrow(/PRIVATE|acme/);
});
