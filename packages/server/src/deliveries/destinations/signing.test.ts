import { createHmac, randomBytes } from 'node:crypto';
import { version, webhooks } from '@signalbox/client';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { headersOf, signingSecret } from './signing.ts';

// The library compares the timestamp with the real time.
const now = new Date();
const newSecret = (version: number) => signingSecret(version, `whsec_${randomBytes(32).toString('base64')}`);

function attempt(body: string, secrets: ReturnType<typeof newSecret>[], signer = secrets[0]!) {
  const fixed = { deliveryId: 'whd_1', attempt: 1, previousCursor: '', version: '1.2.3', now };
  return headersOf({ ...fixed, body: Buffer.from(body), secrets: secrets as [typeof signer], signer });
}

test('the Standard Webhooks library verifies any body with either secret, and with no other', () => {
  const [newest, before] = [newSecret(2), newSecret(1)];
  fc.assert(
    fc.property(fc.json(), (body) => {
      const headers = attempt(body, [newest, before]);
      for (const { text } of [newest, before]) new Webhook(text).verify(body, headers);
      expect(() => new Webhook(newSecret(3).text).verify(body, headers)).toThrow();
      expect(() => new Webhook(newest.text).verify(`${body} `, headers)).toThrow();
    }),
  );
});

test('the hex signature uses the whole secret as its key and names its version', () => {
  const [newest, before] = [newSecret(2), newSecret(1)];
  for (const signer of [newest, before]) {
    const headers = attempt('{"ü":"😀"}', [newest, before], signer);
    const timestamp = Math.floor(now.getTime() / 1000);
    const expected = createHmac('sha256', signer.text).update(`${timestamp}.{"ü":"😀"}`, 'utf8').digest('hex');
    expect(headers).toMatchObject({
      'x-service-timestamp': String(timestamp),
      'x-service-signature': expected,
      'x-service-secret-version': String(signer.version),
      'user-agent': 'Signalbox/1.2.3',
    });
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
  }
});

test('with one secret there is one signature', () => {
  expect(attempt('{}', [newSecret(1)])['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
});

test('the client signs a delivery as the service does', async () => {
  const secret = webhooks.createSigningSecret();
  const body = '{"ü":"😀"}';
  const fixed = { deliveryId: 'whd_1', attempt: 3, previousCursor: 'turn_1:seq_2' };
  const own = headersOf({
    ...fixed,
    body: Buffer.from(body),
    now,
    signer: signingSecret(1, secret),
    secrets: [signingSecret(1, secret)],
    version,
  });
  expect(await webhooks.sign(body, { ...fixed, secret, now: () => now })).toEqual(own);
  expect(webhooks.isSigningSecret(secret)).toBe(true);
  for (const wrong of ['', 'whsec_', secret.slice(0, -1), `${secret}x`, secret.slice(6)]) {
    expect(webhooks.isSigningSecret(wrong), wrong).toBe(false);
    await expect(webhooks.sign(body, { ...fixed, secret: wrong })).rejects.toThrow(TypeError);
  }
});
