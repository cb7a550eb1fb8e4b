import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { Platform } from '../platform.ts';
import { knownModels } from '../usage/known-models.ts';
import { createPrices } from '../usage/prices.ts';
import { createModelCatalog } from './catalog.ts';

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
