// Creates what a scenario needs in the service (key, environment, webhooks), and deletes it afterwards.
import { randomBytes } from 'node:crypto';
import {
  type Agent,
  type Content,
  type CreateAgent,
  type Model,
  type ScriptStep,
  type Session,
  Signalbox,
  SignalboxError,
  type Tool,
  UnprocessableError,
} from '@signalbox/client';
import { type Following, follow } from './follow.ts';
import type { Options } from './options.ts';
import type { Person } from './person.ts';
import type { Shop } from './shop.ts';
import { heading, line, row } from './terminal.ts';

/** What a scenario has to work with. */
export interface Stage {
  /** Uses the demo's own key, which has the permission `write`. */
  readonly client: Signalbox;
  /** The demo's own environment. */
  readonly environment: string;
  readonly shop: Shop;
  /** Aborts when the demo is stopped. */
  readonly signal: AbortSignal;
  /** The scripted model, which takes one step of the script per call, or the model given on the command line. */
  model(name: string, script: ScriptStep[]): Exclude<Model, { provider: 'worker' }>;
  createAgent(agent: CreateAgent): Promise<Agent>;
  /** Opens a session and follows it until it ends. Resolves with its final state. */
  converse(agent: Agent, input: Content, following?: Following): Promise<Session>;
}

/** Deletes what was created, in reverse order. */
export type Undo = (() => Promise<unknown>)[];

const MODEL_KEY_SECRET = 'MODEL_API_KEY';
const KEY_LIFETIME_MS = 3_600_000;

export async function setStage(
  { url, apiKey }: { url: string; apiKey: string },
  shop: Shop,
  { model }: Pick<Options, 'model'>,
  person: Person,
  undo: Undo,
): Promise<Stage> {
  const admin = new Signalbox({ baseUrl: url, apiKey, userAgent: 'signalbox-demo' });
  const expiresAt = new Date(Date.now() + KEY_LIFETIME_MS).toISOString();
  const { keyId, secret } = await admin.keys.create({ name: 'Demo', permission: 'write', expiresAt });
  undo.push(() => admin.keys.delete(keyId));
  row('key', `${keyId}, permission write, expires in an hour`);
  const client = new Signalbox({ baseUrl: url, apiKey: secret!, userAgent: 'signalbox-demo' });

  const environment = `demo-${randomBytes(4).toString('hex')}`;
  await client.environments.create({ name: environment });
  undo.push(() => client.environments.delete(environment));
  row('environment', environment);

  if (model?.apiKey) {
    const allowedHosts = [new URL(model.baseUrl).host];
    await admin.environments.secrets.set(environment, MODEL_KEY_SECRET, { value: model.apiKey, allowedHosts });
    undo.push(() => admin.environments.secrets.delete(environment, MODEL_KEY_SECRET));
    row('secret', `${MODEL_KEY_SECRET}, sent only to ${allowedHosts[0]}`);
  }

  const { signingSecret } = await client.webhookSubscriptions
    .create({ environment, url: `${shop.url}/webhooks` })
    .catch(explainAddress);
  shop.receive(signingSecret!);
  undo.push(() => client.webhookSubscriptions.delete(environment));
  row('webhooks', `to ${shop.url}/webhooks, signed`);
  undo.push(() => deleteSessions(client, environment));

  return {
    client,
    environment,
    shop,
    signal: person.signal,

    model(name, script) {
      if (!model) return { provider: 'scripted', model: name, settings: { script } };
      return {
        provider: 'openai-compatible',
        model: model.name,
        baseUrl: model.baseUrl,
        ...(model.apiKey && { apiKeySecret: MODEL_KEY_SECRET }),
      };
    },

    async createAgent(definition) {
      const agent = await client.agents.create(definition).catch(explainAddress);
      undo.push(() => client.agents.archive(agent.agentId));
      const { provider, model: name, queue } = agent.model;
      row('agent', `${agent.agentId} "${agent.name}", on ${provider}/${name ?? queue}`);
      for (const tool of agent.tools) row('tool', `${'name' in tool ? tool.name : tool.type}, ${about(tool)}`);
      return agent;
    },

    async converse({ agentId }, input, following = {}) {
      const opened = await client.sessions.open({ agentId, environment, input, closeOnIdle: !following.onIdle });
      heading(`Session ${opened.sessionId}`);
      row('customer', textOf(input));
      await follow(client, opened.sessionId, person, following);
      return await client.sessions.get(opened.sessionId);
    },
  };
}

function textOf(input: Content): string {
  if (typeof input === 'string') return input;
  return input.map((part) => (part.type === 'text' ? part.text : `[${part.fileId}]`)).join(' ');
}

function about(tool: Tool): string {
  if (tool.type === 'client') return 'run by this program';
  if (tool.type === 'agent') return 'another agent';
  if (tool.type === 'http' && tool.request.method !== 'GET') return 'needs approval';
  return 'read-only';
}

/** And files. Deleting a session deletes its children too. */
async function deleteSessions(client: Signalbox, environment: string): Promise<void> {
  for await (const { sessionId, parentSessionId, endedAt } of client.sessions.list({ environment })) {
    if (parentSessionId !== null) continue;
    if (endedAt === null) await client.sessions.cancel(sessionId);
    await client.sessions.delete(sessionId);
  }
  for await (const { fileId } of client.files.list({ environment })) await client.files.delete(fileId);
}

function explainAddress(error: unknown): never {
  if (error instanceof UnprocessableError && error.code === 'url_not_allowed') {
    throw new Error(
      `The service is not allowed to connect to an address that the demo needs: ${error.detail}\n` +
        "Start it with SIGNALBOX_EGRESS_ALLOW=127.0.0.1 (and the model's host, if that has a private address).",
      { cause: error },
    );
  }
  throw error;
}

/** Runs every step, also after one has failed, and reports what could not be deleted. */
export async function cleanUp(undo: Undo): Promise<void> {
  for (let last = undo.pop(); last; last = undo.pop()) {
    await last().catch((error: unknown) => {
      const gone = error instanceof SignalboxError && error.status === 404;
      if (!gone) line(`  could not be deleted: ${(error as Error).message}`);
    });
  }
}
