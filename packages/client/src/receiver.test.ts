import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Delivery, type Envelope, type Receiver, webhooks } from './index.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0123456789A=';
const seconds = 1_767_225_600;
const now = () => new Date(seconds * 1000);

const envelope: Envelope = {
  event: 'session.chunks',
  environment: 'production',
  sessionId: 'ses_1',
  agentId: 'agt_1',
  cursor: 'turn_1:seq_1',
  timestamp: '2026-01-01T00:00:00.000Z',
  chunks: [{ type: 'message.chunk', delta: '€', turn: 1, seq: 1 }],
};
const body = JSON.stringify(envelope);
const headers = {
  'content-type': 'application/json',
  'x-service-timestamp': String(seconds),
  'x-service-signature': createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex'),
  'x-service-delivery-id': 'whd_1',
  'x-service-attempt': '3',
  'x-service-previous-cursor': '',
};

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

/** Both interfaces of a receiver, each as a function from a request to its response. */
const faces: [string, (receiver: Receiver) => Promise<(init: RequestInit) => Promise<Response>>][] = [
  [
    'node:http',
    async ({ node }) =>
      async (init) =>
        fetch(await listen(node), init),
  ],
  ['fetch', async (receiver) => (init) => receiver.fetch(new Request('http://x/hook', init))],
];

describe.each(faces)('a receiver via %s', (_, face) => {
  const made = async (options: Partial<Parameters<typeof webhooks.receiver>[0]> = {}) => {
    const seen: [Envelope, Delivery][] = [];
    const errors: unknown[] = [];
    const receiver = webhooks.receiver({
      secrets: secret,
      now,
      onChunks: (...args) => void seen.push(args),
      onError: (error) => void errors.push(error),
      ...options,
    });
    return { post: await face(receiver), seen, errors };
  };

  test('acknowledges with 200 and JSON after onChunks has resolved, and not before', async () => {
    const kept = Promise.withResolvers<void>();
    const order: string[] = [];
    const { post } = await made({
      onChunks: async () => {
        await kept.promise;
        order.push('kept');
      },
    });
    const answer = post({ method: 'POST', headers, body }).then((response) => {
      order.push('answered');
      return response;
    });
    kept.resolve();
    const response = await answer;
    expect(order).toEqual(['kept', 'answered']);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual({ received: true });
  });

  test('passes the envelope to onChunks, with the delivery id, the attempt and the cursor acknowledged before', async () => {
    const { post, seen } = await made();
    await post({ method: 'POST', headers, body });
    await post({ method: 'POST', headers: { ...headers, 'x-service-previous-cursor': 'turn_1:seq_0' }, body });
    expect(seen).toEqual([
      [envelope, { deliveryId: 'whd_1', attempt: 3, previousCursor: null }],
      [envelope, { deliveryId: 'whd_1', attempt: 3, previousCursor: 'turn_1:seq_0' }],
    ]);
  });

  test('responds 401 with the reason if verification fails, and does not call onChunks', async () => {
    const { post, seen, errors } = await made();
    for (const [init, reason] of [
      [{ headers, body: `${body} ` }, 'signature_mismatch'],
      [{ headers: {}, body }, 'missing_header'],
      [{ headers }, 'signature_mismatch'],
    ] as const) {
      const response = await post({ method: 'POST', ...init });
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({ received: false, reason });
    }
    expect([seen, errors]).toEqual([[], []]);
  });

  test('responds 500 if onChunks throws, synchronously or later, so that it is retried; the error is not sent', async () => {
    const error = new Error('private');
    const throws = () => {
      throw error;
    };
    for (const onChunks of [throws, async () => throws()]) {
      const { post, errors } = await made({ onChunks });
      const response = await post({ method: 'POST', headers, body });
      expect(response.status).toBe(500);
      expect(await response.text()).not.toContain('private');
      expect(errors).toEqual([error]);
    }
  });

  test('responds 405 to other methods and 413 to a body over its limit', async () => {
    const { post, seen } = await made({ maxBytes: body.length });
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const response = await post({ method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    }
    expect((await post({ method: 'POST', headers, body: 'x'.repeat(body.length * 4) })).status).toBe(413);
    expect(seen).toEqual([]);
  });
});

test('an endless body gets 413 while it is still being sent', async () => {
  const url = await listen(webhooks.receiver({ secrets: secret, maxBytes: 100_000, onChunks: () => {} }).node);
  const request = send(url, { method: 'POST', headers });
  request.on('error', () => {});
  const answer = once(request, 'response');
  request.write('x'.repeat(200_000));
  const [response] = await answer;
  expect(response.statusCode).toBe(413);
  request.destroy();
});

describe('after a framework has read the body', () => {
  const receive = async (parsed: (body: string) => unknown) => {
    const errors: unknown[] = [];
    const receiver = webhooks.receiver({
      secrets: secret,
      now,
      onChunks: () => {},
      onError: (error) => errors.push(error),
    });
    const url = await listen(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      await receiver.node(Object.assign(request, { body: parsed(Buffer.concat(parts).toString()) }), response);
    });
    return { status: (await fetch(url, { method: 'POST', headers, body })).status, errors };
  };

  test('a raw body (Buffer or text) is verified', async () => {
    expect(await receive((text) => Buffer.from(text))).toEqual({ status: 200, errors: [] });
    expect(await receive((text) => text)).toEqual({ status: 200, errors: [] });
  });

  test('a parsed body is refused, and the error says what to do', async () => {
    const { status, errors } = await receive((text) => JSON.parse(text));
    expect(status).toBe(500);
    expect(String(errors[0])).toMatch(/raw bytes.*express\.raw/);
  });
});
