import { describe, expect, test } from 'vitest';
import { type AwsKey, signatureProblem } from '../../../test/support/aws-signature.ts';
import { parseAccessKey, signatureOf } from './access-key.ts';

const own = { AccessKeyId: 'AKIAACME', SecretAccessKey: 'secret/of+acme' };
const temporary = { ...own, SessionToken: 'session//token==' };

describe('an access key', () => {
  test.each<[string, object, AwsKey]>([
    ['aws configure export-credentials', { Version: 1, ...temporary, Expiration: '2030-01-01T00:00:00Z' }, temporary],
    ['aws sts assume-role', { Credentials: temporary, AssumedRoleUser: { Arn: 'arn' } }, temporary],
    ['aws iam create-access-key', { AccessKey: { UserName: 'agent', Status: 'Active', ...own } }, own],
  ])('is the JSON of %s', (_command, json, { AccessKeyId, SecretAccessKey, SessionToken }) => {
    expect(parseAccessKey(JSON.stringify(json), 'the secret KEY')).toEqual({
      accessKeyId: AccessKeyId,
      secretAccessKey: SecretAccessKey,
      ...(SessionToken && { sessionToken: SessionToken }),
    });
  });

  test.each<[string, unknown]>([
    ['can’t be read', '{"AccessKeyId":'],
    ['has no AccessKeyId', {}],
    ['has no AccessKeyId', { ...own, AccessKeyId: 7 }],
    ['has no AccessKeyId', { accessKeyId: 'AKIAACME', secretAccessKey: 'x' }],
    ['has no SecretAccessKey', { AccessKeyId: 'AKIAACME' }],
    ['has no SecretAccessKey', { ...own, SecretAccessKey: 'two words' }],
    ['has a SessionToken that is not one', { ...own, SessionToken: { a: 1 } }],
  ])('that %s says so, and shows none of it', (why, json) => {
    const parse = () => parseAccessKey(typeof json === 'string' ? json : JSON.stringify(json), 'the secret KEY');
    expect(parse).toThrow(`The JSON of the secret KEY ${why}`);
    expect(parse).not.toThrow(/AKIA|secret\/of|two words/);
  });
});

describe('a signature', () => {
  const at = { region: 'eu-central-1', service: 'bedrock' };
  const body = JSON.stringify({ text: 'ü😀' });
  async function signed(key: AwsKey, path = '/model/us.anthropic.claude-v1%3A0/converse-stream') {
    const url = new URL(`https://bedrock-runtime.eu-central-1.amazonaws.com${path}`);
    const headers = new Headers({ 'content-type': 'application/json', 'user-agent': 'a proxy may change it' });
    const request = { method: 'POST', url, headers, body };
    const made = await signatureOf(parseAccessKey(JSON.stringify(key), ''), request, {
      ...at,
      clock: { now: () => new Date() },
    });
    for (const [name, value] of Object.entries(made)) headers.set(name, value);
    const sent = { ...Object.fromEntries(headers), host: url.host };
    return { path, headers: sent, body: {}, text: body, closed: Promise.resolve(true) };
  }

  test.each<[string, AwsKey]>([
    ['of a user', own],
    ['of a role, with its session', temporary],
  ])('with the key %s is what AWS calculates', async (_whose, key) => {
    expect(signatureProblem(await signed(key), { key, ...at })).toBeUndefined();
  });

  test('covers the path, the body and the region', async () => {
    const request = await signed(own);
    const wrong = [
      signatureProblem({ ...request, path: '/model/other/converse-stream' }, { key: own, ...at }),
      signatureProblem({ ...request, text: '{}' }, { key: own, ...at }),
      signatureProblem(request, { key: own, ...at, region: 'us-east-1' }),
      signatureProblem(request, { key: { ...own, SecretAccessKey: 'another' }, ...at }),
    ];
    expect(wrong.map((problem) => problem?.[0])).toEqual(Array(4).fill('InvalidSignatureException'));
  });

  test.each([
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123%3Aprofile%2Fx/converse-stream',
    '/model/a%20b/converse-stream',
  ])('is right for %s', async (path) => {
    expect(signatureProblem(await signed(own, path), { key: own, ...at })).toBeUndefined();
  });
});
