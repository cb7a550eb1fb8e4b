// What the demo makes in the service before its Session can open, and takes away again after it.
import { randomBytes } from 'node:crypto';
import { type Agent, type CreateAgent, Signalbox, SignalboxError, UnprocessableError } from '@signalbox/client';
import type { Options } from './options.ts';
import type { Shop } from './shop.ts';
import { line, row } from './terminal.ts';

export const order = { orderId: '1042', amount: 42.5, currency: 'EUR' };

export interface Setting {
  /** With the demo's own key, which may write and not administrate. */
  client: Signalbox;
  agent: Agent;
  environment: string;
}

const MODEL_KEY_SECRET = 'MODEL_API_KEY';
const KEY_LIFETIME_MS = 3_600_000;

/** Puts on `undo` how to take each thing away again, the last first. */
export async function prepare(
  url: string,
  adminKey: string,
  shop: Shop,
  { model }: Pick<Options, 'model'>,
  undo: (() => Promise<unknown>)[],
): Promise<Setting> {
  const admin = new Signalbox({ baseUrl: url, apiKey: adminKey, userAgent: 'signalbox-demo' });

  const expiresAt = new Date(Date.now() + KEY_LIFETIME_MS).toISOString();
  const { keyId, secret } = await admin.keys.create({ name: 'Demo', permission: 'write', expiresAt });
  undo.push(() => admin.keys.delete(keyId));
  row('key', `${keyId}, may write, for an hour`);
  const client = new Signalbox({ baseUrl: url, apiKey: secret!, userAgent: 'signalbox-demo' });

  const environment = `demo-${randomBytes(4).toString('hex')}`;
  await client.environments.create({ name: environment });
  undo.push(() => client.environments.delete(environment));
  row('environment', environment);

  if (model?.apiKey) {
    const allowedHosts = [new URL(model.baseUrl).host];
    await admin.environments.secrets.set(environment, MODEL_KEY_SECRET, { value: model.apiKey, allowedHosts });
    undo.push(() => admin.environments.secrets.delete(environment, MODEL_KEY_SECRET));
    row('secret', `${MODEL_KEY_SECRET}, which goes to ${allowedHosts[0]} alone`);
  }

  const agent = await client.agents.create(refundDesk(shop.url, model)).catch(explainAddress);
  undo.push(() => client.agents.archive(agent.agentId));
  row('agent', `${agent.agentId} "${agent.name}", on ${agent.model.provider}/${agent.model.model}`);
  row('tool', 'refund_order, which asks a person first');

  const { signingSecret } = await client.webhookSubscriptions
    .create({ environment, url: `${shop.url}/webhooks` })
    .catch(explainAddress);
  shop.receive(signingSecret!);
  undo.push(() => client.webhookSubscriptions.delete(environment));
  row('webhooks', `to ${shop.url}/webhooks, signed`);

  return { client, agent, environment };
}

/** An Agent that can give money back. Its tool has an effect (it is a POST), so every call of it waits for a person. */
function refundDesk(shopUrl: string, model: Options['model']): CreateAgent {
  return {
    name: 'Refund desk',
    instructions: [
      'You are the refund desk of a small shop.',
      'Say in one or two sentences what you are about to do, then call refund_order once.',
      'When you have its result, tell the customer in one or two sentences what came of it.',
      'If the call was not allowed, say so and do not try again.',
    ].join('\n'),
    model: model
      ? {
          provider: 'openai-compatible',
          model: model.name,
          baseUrl: model.baseUrl,
          ...(model.apiKey && { apiKeySecret: MODEL_KEY_SECRET }),
        }
      : {
          provider: 'scripted',
          model: 'refund-desk',
          settings: {
            script: [
              {
                text:
                  'I am sorry that your order arrived damaged. I will give you the full price back, ' +
                  'and ask a colleague to confirm it first.',
                tokenDelayMs: 50,
                toolCalls: [{ name: 'refund_order', input: { ...order, reason: 'arrived damaged' } }],
              },
              { text: 'Here is what came of it: {{lastToolResult}}', tokenDelayMs: 50 },
            ],
          },
        },
    tools: [
      {
        type: 'http',
        name: 'refund_order',
        description: 'Gives a customer money back for an order.',
        inputSchema: {
          type: 'object',
          properties: {
            orderId: { type: 'string' },
            amount: { type: 'number', exclusiveMinimum: 0 },
            currency: { type: 'string', enum: ['EUR'] },
            reason: { type: 'string' },
          },
          required: ['orderId', 'amount', 'currency', 'reason'],
          additionalProperties: false,
        },
        request: {
          method: 'POST',
          url: `${shopUrl}/refunds`,
          body: { orderId: '{{input.orderId}}', amount: '{{input.amount}}', reason: '{{input.reason}}' },
        },
      },
    ],
  };
}

function explainAddress(error: unknown): never {
  if (error instanceof UnprocessableError && error.code === 'url_not_allowed') {
    throw new Error(
      `The service may not reach an address that the demo needs: ${error.detail}\n` +
        "Start it with SIGNALBOX_EGRESS_ALLOW=127.0.0.1 (and the model's host, where that is a private one).",
      { cause: error },
    );
  }
  throw error;
}

/** Goes on where one step fails, and says so: the others are still to be done. */
export async function takeAway(undo: (() => Promise<unknown>)[]): Promise<void> {
  for (let last = undo.pop(); last; last = undo.pop()) {
    await last().catch((error: unknown) => {
      const gone = error instanceof SignalboxError && error.status === 404;
      if (!gone) line(`  could not be taken away: ${(error as Error).message}`);
    });
  }
}
