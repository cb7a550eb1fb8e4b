// An access key of AWS, in JSON as its command line prints it. It signs each request (Signature Version 4); its secret part is sent nowhere.
import { createHash, createHmac } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../../lib/json/json.ts';
import { ModelFailure } from '../model/model.ts';
import { isRecord } from '../model/provider-error.ts';
import type { OutgoingRequest, ProviderKey } from '../model/provider-key.ts';

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** `label`: the secret that has it. Throws `model_key_rejected`, which names what is wrong and shows none of it. */
export function parseAccessKey(text: string, label: string): AccessKey {
  const refuse = (why: string) =>
    new ModelFailure('model_key_rejected', `The JSON of ${label} ${why}`, { retryable: false });
  const json = parseJson(text);
  if (!isRecord(json)) throw refuse('can’t be read');
  // `aws iam create-access-key`, `aws sts assume-role`, `aws configure export-credentials`.
  const given = [json.AccessKey, json.Credentials, json].find(isRecord) ?? {};
  const { AccessKeyId, SecretAccessKey, SessionToken } = given;
  if (!isPart(AccessKeyId)) throw refuse('has no AccessKeyId');
  if (!isPart(SecretAccessKey)) throw refuse('has no SecretAccessKey');
  if (SessionToken === undefined || SessionToken === null || SessionToken === '')
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey };
  if (!isPart(SessionToken)) throw refuse('has a SessionToken that is not one');
  return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
}

function isPart(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,8192}$/.test(value);
}

/** The region of a server of Bedrock. Undefined: it is none. */
export function regionOf({ hostname }: URL): string | undefined {
  return /(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./.exec(hostname)?.[1];
}

/** An access key, which signs each request to Bedrock. Throws `model_key_rejected` or `model_not_allowed`. */
export async function signingKey(
  { name, value, label }: ProviderKey,
  { baseUrl, clock }: { baseUrl: URL; clock: Pick<Clock, 'now'> },
): Promise<ProviderKey> {
  const key: AccessKey = parseAccessKey(value, label);
  const region = regionOf(baseUrl);
  if (region === undefined) {
    const why = `${label} is an access key, which signs for a region: the base URL must be like https://bedrock-runtime.REGION.amazonaws.com`;
    throw new ModelFailure('model_not_allowed', `The agent’s model can’t be called: ${why}`, { retryable: false });
  }
  return {
    name,
    value: key.sessionToken ?? key.secretAccessKey,
    label,
    isOnlySigning: true,
    headers: (request) => signatureOf(key, request, { service: 'bedrock', region, clock }),
  };
}

/** The headers that sign the request for a service of AWS in a region. */
export async function signatureOf(
  key: AccessKey,
  { method, url, headers, body }: OutgoingRequest,
  { service, region, clock }: { service: string; region: string; clock: Pick<Clock, 'now'> },
): Promise<Record<string, string>> {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const signer = new SignatureV4({ credentials: key, region, service, sha256: Sha256 });
  const signed = await signer.sign(
    {
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port !== '' && { port: Number(url.port) }),
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      // What a proxy may change is not signed.
      headers: { host: url.host, 'content-type': headers.get('content-type') ?? 'application/json' },
      body,
    },
    { signingDate: clock.now() },
  );
  const { host: _, ...own } = signed.headers;
  return own;
}

/** In the form that the package takes. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    throw new TypeError('Each hash is used once');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
