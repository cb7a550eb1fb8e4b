import { createHmac } from 'node:crypto';
import { standardHeaders, deliveryHeaders as wireHeaders } from '@signalbox/contract';
import { Headers as UndiciHeaders } from 'undici';
import { describe, expect, test } from 'vitest';
import { WebhookVerificationError, type WebhookVerificationReason, webhooks } from './index.ts';
import type { HeadersLike } from './webhooks.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0123456789A=';
const other = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD0123456789A=';
const now = () => new Date(1_767_225_600_500);
const seconds = 1_767_225_600;

const envelope = {
  event: 'session.chunks',
  environment: 'production',
  sessionId: 'ses_1',
  agentId: 'agt_1',
  cursor: 'turn_1:seq_1',
  timestamp: '2026-01-01T00:00:00.000Z',
  chunks: [{ type: 'message.chunk', delta: 'é€😀', turn: 1, seq: 1 }],
};
// Not as JSON.stringify would write it: the signature covers bytes, not the value.
const body = `  ${JSON.stringify(envelope, null, 1)}\n`;

function sign(text: string, timestamp: number | string = seconds, key = secret): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${timestamp}.${text}`).digest('hex');
  return { 'X-Service-Timestamp': String(timestamp), 'X-Service-Signature': signature };
}

const verify = (raw: string | Uint8Array, headers: HeadersLike, secrets: string | string[] = secret) =>
  webhooks.verify(raw, headers, secrets, { now });

const refused = async (reason: WebhookVerificationReason, answer: Promise<unknown>) => {
  const error = await answer.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(WebhookVerificationError);
  expect(error).toMatchObject({ reason, message: expect.stringContaining(reason) });
  expect(String(error)).not.toContain(secret);
};

describe('a delivery that the service signed', () => {
  test('is accepted as text, bytes or Buffer, and returns the envelope', async () => {
    for (const raw of [body, new TextEncoder().encode(body), Buffer.from(body)]) {
      expect(await verify(raw, sign(body))).toEqual(envelope);
    }
  });

  test('is accepted with headers of any style', async () => {
    const { 'X-Service-Timestamp': timestamp, 'X-Service-Signature': signature } = sign(body) as Record<string, string>;
    const styles: HeadersLike[] = [
      new Headers(sign(body)),
      { 'x-service-timestamp': timestamp, 'x-service-signature': signature, 'set-cookie': ['a', 'b'] },
      { 'X-SERVICE-TIMESTAMP': [timestamp!], 'X-SERVICE-SIGNATURE': [signature!], host: undefined },
      new UndiciHeaders(sign(body) as Record<string, string>),
      new Map(Object.entries(sign(body) as Record<string, string>)),
      { get: (name: string) => new Headers(sign(body)).get(name) },
    ];
    for (const headers of styles) expect(await verify(body, headers)).toEqual(envelope);
  });

  test('is accepted with a secret that has white space around it, as from a file', async () => {
    for (const secrets of [`${secret}\n`, [` ${secret}`]])
      expect(await verify(body, sign(body), secrets)).toEqual(envelope);
    // If something else is wrong, the error says that it is not this.
    await expect(verify('{}', sign('{}'), `${secret}\n`)).rejects.toThrow(/malformed_body: .* white space .* left out/);
    await expect(verify(body, sign(body), `${other}\n`)).rejects.toThrow(
      /signature_mismatch: .* white space .* left out/,
    );
  });

  test('is accepted during a rotation with the secret that signed, alone or among others', async () => {
    for (const secrets of [other, [other], [secret, other], [other, secret]]) {
      expect(await verify(body, sign(body, seconds, other), secrets)).toEqual(envelope);
    }
    await refused('signature_mismatch', verify(body, sign(body, seconds, other), [secret]));
  });

  test('is accepted up to 300 s from the clock, either way, or up to the given tolerance, and no further', async () => {
    for (const skew of [-300, 300]) expect(await verify(body, sign(body, seconds + skew))).toEqual(envelope);
    for (const skew of [-301, 301]) {
      await refused('timestamp_outside_tolerance', verify(body, sign(body, seconds + skew)));
    }
    const options = { now, toleranceSeconds: 10 };
    await refused('timestamp_outside_tolerance', webhooks.verify(body, sign(body, seconds - 11), secret, options));
    const unset = { now, toleranceSeconds: Number.NaN };
    await refused('timestamp_outside_tolerance', webhooks.verify(body, sign(body), secret, unset));
  });
});

describe('a delivery is refused', () => {
  test('if a byte of its body, timestamp or signature differs', async () => {
    await refused('signature_mismatch', verify(body.replace('é', 'e'), sign(body)));
    await refused('signature_mismatch', verify(JSON.stringify(envelope), sign(body)));
    await refused('signature_mismatch', verify(body, { ...sign(body), 'X-Service-Timestamp': String(seconds + 1) }));
    const headers = sign(body);
    for (const index of [0, 31, 63]) {
      const digits = [...headers['X-Service-Signature']!];
      digits[index] = digits[index] === '0' ? '1' : '0';
      await refused('signature_mismatch', verify(body, { ...headers, 'X-Service-Signature': digits.join('') }));
    }
  });

  test('if a header is missing, empty, or repeated with different values', async () => {
    const headers = sign(body);
    await refused('missing_header', verify(body, {}));
    await refused('missing_header', verify(body, { ...headers, 'X-Service-Signature': '' }));
    await refused('missing_header', verify(body, { 'x-service-signature': headers['X-Service-Signature']! }));
    await refused('missing_header', verify(body, { ...headers, 'x-service-signature': 'f'.repeat(64) }));
    const twice = [headers['X-Service-Timestamp']!, '1'];
    await refused('missing_header', verify(body, { ...headers, 'X-Service-Timestamp': twice }));
  });

  test.each([
    '',
    ' ',
    `${seconds}.0`,
    `${seconds}x`,
    `+${seconds}`,
    `-${seconds}`,
    ` ${seconds}`,
    `0x6955b900`,
    '1e9',
    'NaN',
    '9'.repeat(16),
    '٣',
  ])('when its timestamp is %j, even rightly signed', async (timestamp) => {
    await refused(timestamp === '' ? 'missing_header' : 'malformed_timestamp', verify(body, sign(body, timestamp)));
  });

  test('if its signature is not lowercase hex of 32 bytes', async () => {
    const { 'X-Service-Signature': signature = '' } = sign(body);
    for (const bad of [
      signature.toUpperCase(),
      signature.slice(2),
      `${signature}00`,
      `v1,${signature}`,
      'zz'.repeat(32),
    ]) {
      await refused('malformed_signature', verify(body, { ...sign(body), 'X-Service-Signature': bad }));
    }
  });

  test('if the signed body is not an envelope', async () => {
    for (const text of ['', 'null', '[]', '{', '{"event":"other","chunks":[]}', '{"event":"session.chunks"}']) {
      await refused('malformed_body', verify(text, sign(text)));
    }
    const bad = Buffer.concat([Buffer.from('"'), Buffer.of(0xff), Buffer.from('"')]);
    const signature = createHmac('sha256', secret).update(`${seconds}.`).update(bad).digest('hex');
    const headers = { 'x-service-timestamp': String(seconds), 'x-service-signature': signature };
    await refused('malformed_body', verify(bad, headers));
  });
});

describe('a mistake of the program is a TypeError, not a refused delivery', () => {
  test('no secret, or an empty one, with which anyone could sign', async () => {
    for (const secrets of ['', [], [''], [secret, ''], undefined as unknown as string]) {
      await expect(webhooks.verify(body, sign(body, seconds, ''), secrets, { now })).rejects.toThrow(TypeError);
      expect(() => webhooks.receiver({ secrets, onChunks: () => {} })).toThrow(TypeError);
    }
  });

  test('a body that is already parsed', async () => {
    await expect(verify(envelope as unknown as string, sign(body))).rejects.toThrow(/raw bytes/);
  });
});

test('the header names are those of the contract, and Standard Webhooks headers are left to its libraries', () => {
  expect(Object.keys(sign(body)).map((name) => name.toLowerCase())).toEqual([
    wireHeaders.timestamp,
    wireHeaders.signature,
  ]);
  expect(Object.values(wireHeaders)).not.toContain(standardHeaders.signature);
});
