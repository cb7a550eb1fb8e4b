/** Checks a request's Signature Version 4 as AWS documents it, from the request as it arrived. */
import { createHash, createHmac } from 'node:crypto';
import type { RecordedRequest } from './provider-server.ts';

export interface AwsKey {
  AccessKeyId: string;
  SecretAccessKey: string;
  SessionToken?: string;
}

/** Why AWS refuses it: the name of the exception and its message. Undefined: it is signed with the key. */
export function signatureProblem(
  { headers, path, text, method = 'POST' }: Pick<RecordedRequest, 'headers' | 'path' | 'text'> & { method?: string },
  { key, region, service }: { key: AwsKey; region: string; service: string },
): [exception: string, message: string] | undefined {
  const parts = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, keyId, scope, names = '', signature] = parts.exec(headers.authorization ?? '') ?? [];
  if (signature === undefined) return ['MissingAuthenticationTokenException', 'Missing Authentication Token'];
  const date = String(headers['x-amz-date']);
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (!(Math.abs(Date.now() - at) < 900_000)) return ['InvalidSignatureException', `Signature expired: ${date}`];
  if (keyId !== key.AccessKeyId || headers['x-amz-security-token'] !== key.SessionToken)
    return ['UnrecognizedClientException', 'The security token included in the request is invalid.'];
  if (scope !== `${date.slice(0, 8)}/${region}/${service}/aws4_request`)
    return ['InvalidSignatureException', 'Credential should be scoped to a valid region.'];
  const signed = names.split(';');
  const required = Object.keys(headers).filter((name) => name === 'host' || name.startsWith('x-amz-'));
  if (required.some((name) => !signed.includes(name)))
    return ['InvalidSignatureException', 'There were headers present in the request which were not signed'];
  const payload = createHash('sha256').update(text).digest('hex');
  const { pathname, searchParams } = new URL(path, 'https://host');
  const query = [...searchParams].map((pair) => pair.map(encodeURIComponent).join('=')).sort();
  const canonical = [
    method,
    pathname.split('/').map(encodeURIComponent).join('/'),
    query.join('&'),
    ...signed.map((name) => `${name}:${headers[name]}`),
    '',
    names,
    payload,
  ].join('\n');
  const hashed = createHash('sha256').update(canonical).digest('hex');
  const hmac = (secret: string | Buffer, data: string) => createHmac('sha256', secret).update(data).digest();
  const secret = [date.slice(0, 8), region, service, 'aws4_request'].reduce<string | Buffer>(
    hmac,
    `AWS4${key.SecretAccessKey}`,
  );
  const expected = hmac(secret, ['AWS4-HMAC-SHA256', date, scope, hashed].join('\n')).toString('hex');
  return signature === expected
    ? undefined
    : ['InvalidSignatureException', 'The request signature we calculated does not match the signature you provided.'];
}
