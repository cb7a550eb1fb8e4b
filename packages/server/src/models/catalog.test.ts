import { expect, test } from 'vitest';
import { LISTED as BEDROCK_MODELS, bedrockLists } from '../../test/support/bedrock-lists.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { EgressRequest } from '../egress/exchange.ts';
import { systemClock } from '../lib/clock.ts';
import type { Platform } from '../platform.ts';
import { knownModels } from '../usage/known-models.ts';
import { createPrices } from '../usage/prices.ts';
import { createModelCatalog } from './catalog.ts';
import { signingKey } from './keys/access-key.ts';
import type { ProviderKey } from './model/provider-key.ts';

const { date, models } = knownModels();

function catalogOf(names: readonly string[], builtIn: Parameters<typeof createPrices>[1]) {
  const body = Buffer.from(JSON.stringify({ data: names.map((id) => ({ id })) }));
  const egress = { of: () => ({ request: async () => ({ status: 200, body, truncated: false }) }) };
  const own = { 'openai/gpt-4.1-mini': { inputUsd: 7, outputUsd: 7 } };
  const platform = { egress, clock: createManualClock(), prices: createPrices(own, builtIn) };
  return createModelCatalog(
    platform as unknown as Pick<Platform, 'egress' | 'clock' | 'prices'>,
    async () => undefined,
  );
}

test('a list of the provider’s own server has prices with tiers and announced ends, and the date of the data', async () => {
  const names = ['gpt-4.1-2025-04-14', 'gpt-4.1-mini', 'gpt-6.1-terra', 'gpt-unheard'];
  const request = {
    organizationId: 'o',
    environment: 'production',
    config: { provider: 'openai', model: 'x' },
  } as const;
  const list = await catalogOf(names, { date, models }).list(request);
  expect(list).toMatchObject({ problem: null, pricesDate: date });
  const { price } = models['openai/gpt-6.1-terra']!;
  expect(price?.tiers).toHaveLength(1);
  expect(list.models.map(({ model, prices, endsAt, replacement }) => ({ model, prices, endsAt, replacement }))).toEqual(
    [
      { model: 'gpt-4.1-2025-04-14', prices: models['openai/gpt-4.1']!.price, endsAt: '2027-01-14', replacement: null },
      { model: 'gpt-4.1-mini', prices: { inputUsd: 7, outputUsd: 7 }, endsAt: '2027-01-14', replacement: null },
      { model: 'gpt-6.1-terra', prices: price, endsAt: null, replacement: null },
      { model: 'gpt-unheard', prices: null, endsAt: null, replacement: null },
    ],
  );

  const gateway = { ...request, config: { ...request.config, baseUrl: 'https://gateway.example/v1' } };
  const elsewhere = await catalogOf(names, { date, models }).list(gateway);
  expect(elsewhere.models.map(({ prices, endsAt }) => [prices?.inputUsd, endsAt])).toEqual([
    [undefined, null],
    [7, null],
    [undefined, null],
    [undefined, null],
  ]);
  expect((await catalogOf(names, null).list(request)).pricesDate).toBeNull();
});

const BEDROCK = 'https://bedrock-runtime.eu-central-1.amazonaws.com';
const accessKey = { AccessKeyId: 'AKIAACME', SecretAccessKey: 'secret', SessionToken: 'session' };
const apiKey = { name: 'KEY', value: 'ABSK-of-acme', label: 'the secret KEY' };
const asKey = (key: object) =>
  signingKey({ ...apiKey, value: JSON.stringify(key) }, { baseUrl: new URL(BEDROCK), clock: systemClock });

/** `refusing`: what the list of profiles is answered with. */
function bedrockCatalog(key: ProviderKey, refusing?: { status: number; body: object; headers: object }) {
  const requests: string[] = [];
  const lists = bedrockLists('eu-central-1', key.isOnlySigning ? () => accessKey : apiKey.value);
  const request = async ({ method, url: href, headers = {} }: EgressRequest) => {
    const url = new URL(href);
    requests.push(`${method} ${url.host}${url.pathname}`);
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const isRefused = refusing && url.pathname === '/inference-profiles';
    const { body, ...reply } = isRefused ? refusing : lists({ method, url, headers: lower });
    return { headers: {}, ...reply, body: Buffer.from(JSON.stringify(body)), truncated: false };
  };
  const platform = { egress: { of: () => ({ request }) }, clock: systemClock, prices: createPrices({}, null) };
  const catalog = createModelCatalog(platform as never, async () => key);
  const list = () =>
    catalog.list({
      organizationId: 'o',
      environment: 'production',
      config: { provider: 'bedrock', model: 'x', baseUrl: BEDROCK },
    });
  return { list, requests };
}

test.each<[string, () => Promise<ProviderKey> | ProviderKey]>([
  ['an access key, which only signs', () => asKey(accessKey)],
  ['an API key that may be sent there', () => ({ ...apiKey, allowedHosts: ['*.eu-central-1.amazonaws.com'] })],
  ['an API key for this very host', () => ({ ...apiKey, allowedHosts: ['bedrock.eu-central-1.amazonaws.com'] })],
])('Bedrock lists what agents can call for %s: models on demand, and inference profiles', async (_what, keyOf) => {
  const { list, requests } = bedrockCatalog(await keyOf());
  const { models, problem } = await list();
  expect([problem, models.map(({ model, displayName }) => [model, displayName])]).toEqual([null, BEDROCK_MODELS]);
  expect(models.find(({ model }) => model.startsWith('eu.'))).toMatchObject({ input: ['image', 'pdf'] });
  expect(requests).toEqual([
    'GET bedrock.eu-central-1.amazonaws.com/foundation-models',
    'GET bedrock.eu-central-1.amazonaws.com/inference-profiles',
  ]);
});

test.each([[['bedrock-runtime.eu-central-1.amazonaws.com']], [['bedrock.us-east-1.amazonaws.com']], [undefined]])(
  'an API key of Bedrock for %j is not sent to the server of lists',
  async (allowedHosts) => {
    const { list, requests } = bedrockCatalog({ ...apiKey, ...(allowedHosts && { allowedHosts }) });
    expect(await list()).toMatchObject({
      models: [],
      problem: {
        code: 'model_not_allowed',
        message:
          'Amazon Bedrock lists its models at bedrock.eu-central-1.amazonaws.com: add this host to the allowedHosts of the secret KEY, or enter the model’s ID',
      },
    });
    expect(requests).toEqual([]);
  },
);

test.each<[string, object, Parameters<typeof bedrockCatalog>[1], RegExp]>([
  ['another key', { ...accessKey, SecretAccessKey: 'x' }, undefined, /HTTP 403 \(InvalidSignatureException\)$/],
  [
    'a missing right',
    accessKey,
    {
      status: 403,
      body: { message: 'User: arn:aws:iam::123456789012:user/acme is not authorized' },
      headers: { 'x-amzn-errortype': 'AccessDeniedException' },
    },
    /HTTP 403 \(AccessDeniedException\)$/,
  ],
  ['another response', accessKey, { status: 200, body: { profiles: [] }, headers: {} }, /is not a list of models$/],
])('a list of Bedrock with %s is a problem without the account', async (_why, key, refusing, message) => {
  const { models, problem } = await bedrockCatalog(await asKey(key), refusing).list();
  expect(models).toEqual([]);
  expect(problem?.message).toMatch(message);
  expect(problem?.message).not.toContain('acme');
});
