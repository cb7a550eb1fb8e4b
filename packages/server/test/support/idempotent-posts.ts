// Kinds of POST requests with a count of their effects, for tests that an Idempotency-Key allows exactly one effect.
import type { Signalbox } from '@signalbox/client';

/** A POST whose effect no other request in the organization has. */
export interface OncePost {
  /** Below `/api/v1`. */
  path: string;
  body?: unknown;
  /** How often the request has taken effect. */
  effects(): Promise<number>;
}

export interface OnceWorld {
  client: Signalbox;
  /** An agent whose tool `pay` needs approval. */
  agentId: string;
  /** A session whose deliveries can be recovered. */
  sessionId: string;
}

/** Resources for the requests, in an organization whose environment `production` has a subscription at `url`. */
export async function createOnceWorld(client: Signalbox, url: string): Promise<OnceWorld> {
  await client.webhookSubscriptions.create({ environment: 'production', url });
  const { agentId } = await client.agents.create({
    name: 'Payer',
    model: {
      provider: 'scripted',
      model: 'x',
      settings: { script: [{ toolCalls: [{ name: 'pay' }] }, { text: 'ok' }] },
    },
    tools: [{ type: 'client', name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, approval: 'always' }],
  });
  return { client, agentId, sessionId: await openWaiting(client, agentId) };
}

async function firstDelivery(client: Signalbox, sessionId: string): Promise<string> {
  while (true) {
    const { data } = await client.webhookSubscriptions.deliveries.list('production', { sessionId, limit: 1 });
    if (data[0]) return data[0].deliveryId;
  }
}

async function openWaiting(client: Signalbox, agentId: string): Promise<string> {
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'waiting')) break;
  }
  return sessionId;
}

async function events(client: Signalbox, type: string, resourceId?: string): Promise<number> {
  let count = 0;
  const query = {
    type: type as 'api_key.created',
    order: 'asc' as const,
    limit: 1000,
    ...(resourceId && { resourceId }),
  };
  for await (const _ of client.events.list(query)) count += 1;
  return count;
}

async function named(list: AsyncIterable<{ name: string }>, name: string): Promise<number> {
  let count = 0;
  for await (const one of list) if (one.name === name) count += 1;
  return count;
}

type Prepare = (world: OnceWorld, mark: string) => Promise<OncePost>;

/** `mark` distinguishes requests of the same kind. */
export const kindsOfPost: Readonly<Record<string, Prepare>> = {
  'fork a Session': async ({ client, sessionId }, mark) => ({
    path: `/sessions/${sessionId}/fork`,
    body: { atTurn: 0, metadata: { mark } },
    async effects() {
      let count = 0;
      for await (const { metadata } of client.sessions.list({ forkedFromSessionId: sessionId, limit: 100 }))
        if (metadata.mark === mark) count += 1;
      return count;
    },
  }),
  'open a Session': async ({ client, agentId }, mark) => ({
    path: '/sessions',
    body: { agentId, environment: 'staging', metadata: { mark } },
    async effects() {
      let count = 0;
      for await (const _ of client.sessions.list({ metadata: { mark } })) count += 1;
      return count;
    },
  }),
  'create an Agent': async ({ client }, mark) => ({
    path: '/agents',
    body: { name: mark, model: 'scripted/x' },
    effects: () => named(client.agents.list({ limit: 100 }), mark),
  }),
  'create a key, with its secret': async ({ client }, mark) => ({
    path: '/api_keys',
    body: { name: mark, permission: 'read' },
    effects: () => named(client.keys.list({ limit: 100 }), mark),
  }),
  'rotate a key': async ({ client }, mark) => {
    const { keyId } = await client.keys.create({ name: mark, permission: 'read' });
    return { path: `/api_keys/${keyId}/rotate`, effects: () => events(client, 'api_key.rotated', keyId) };
  },
  'send a message': async ({ client, agentId }, mark) => {
    const sessionId = await openWaiting(client, agentId);
    return {
      path: `/sessions/${sessionId}/messages`,
      body: { content: mark },
      async effects() {
        let count = 0;
        for await (const message of client.sessions.messages(sessionId)) {
          if (JSON.stringify(message).includes(mark)) count += 1;
        }
        return count;
      },
    };
  },
  'resolve an approval': async ({ client, agentId }) => {
    const sessionId = await openWaiting(client, agentId);
    const [approval] = (await client.approvals.list({ sessionId })).data;
    const { operationId } = approval!;
    return {
      path: `/approvals/${operationId}/resolve`,
      body: { decision: 'denied', reason: 'no' },
      effects: () => events(client, 'approval.resolved', operationId),
    };
  },
  'send a delivery again': async ({ client, agentId }) => {
    const deliveryId = await firstDelivery(client, await openWaiting(client, agentId));
    return {
      path: `/webhook_subscriptions/production/deliveries/${deliveryId}/resend`,
      effects: () => events(client, 'webhook_delivery.resent', deliveryId),
    };
  },
  'recover deliveries': async ({ client, sessionId }) => {
    const before = await events(client, 'webhook_delivery.recovered');
    return {
      path: '/webhook_subscriptions/production/recover',
      body: { sessionId, cursor: 'turn_1:seq_1' },
      effects: async () => (await events(client, 'webhook_delivery.recovered')) - before,
    };
  },
  'rotate a signing secret': async ({ client }) => {
    const { secretVersion: before } = await client.webhookSubscriptions.get('production');
    return {
      path: '/webhook_subscriptions/production/rotate_secret',
      body: { gracePeriodSeconds: 3600 },
      effects: async () => (await client.webhookSubscriptions.get('production')).secretVersion - before,
    };
  },
};

/** A response other than 503 and `idempotency_in_progress`. */
export interface OnceAnswer {
  status: number;
  text: string;
  replayed: boolean;
}

/** Undefined if it has to be retried: the first request is still in progress, or there is no response. */
export async function postOnce(
  url: string,
  { key, idempotencyKey, path, body }: { key: string; idempotencyKey: string; path: string; body?: unknown },
): Promise<OnceAnswer | undefined> {
  try {
    const response = await fetch(`${url}/api/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'idempotency-key': idempotencyKey,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isUnderWay = response.status === 409 && text.includes('"idempotency_in_progress"');
    if (isUnderWay || response.status === 503) return undefined;
    return { status: response.status, text, replayed: response.headers.get('idempotent-replayed') === 'true' };
  } catch {
    return undefined;
  }
}
