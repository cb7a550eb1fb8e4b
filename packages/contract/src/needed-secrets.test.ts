import { expect, test } from 'vitest';
import { neededSecrets } from './needed-secrets.ts';

test('a definition needs the keys of its models and the secrets of its tools, each once', () => {
  const request = { url: 'https://x', headers: { Authorization: 'Bearer {{secrets.SHOP}} {{ secrets.B2 }}' } };
  expect(
    neededSecrets({
      model: {
        provider: 'anthropic',
        model: 'a',
        fallbacks: [
          { provider: 'openai', model: 'b', apiKeySecret: 'MINE' },
          { provider: 'openai', model: 'c', baseUrl: 'https://gateway.example.com/v1' },
          { provider: 'scripted', model: 'd' },
        ],
        compaction: { provider: 'anthropic', model: 'e' },
      },
      tools: [
        { type: 'http', request },
        { type: 'mcp', headers: { a: '{{secrets.SHOP}}' } },
      ],
    }),
  ).toEqual([{ name: 'ANTHROPIC_API_KEY', provider: 'anthropic' }, { name: 'B2' }, { name: 'MINE' }, { name: 'SHOP' }]);
  expect(neededSecrets({ model: { provider: 'openai', model: 'a' }, tools: undefined })).toEqual([
    { name: 'OPENAI_API_KEY', provider: 'openai' },
  ]);
  expect(neededSecrets({ model: { provider: 'worker', queue: 'q' }, tools: 'not a list {{secrets.A}}' })).toEqual([
    { name: 'A' },
  ]);
});

test('the usual key of a cloud names the server at which an identity may take its place', () => {
  const azure = (baseUrl: string, apiKeySecret?: string) => ({ provider: 'azure', model: 'a', baseUrl, apiKeySecret });
  const own = 'https://acme.openai.azure.com/openai/v1';
  const gateway = 'https://gateway.example.com/v1';
  const of = (model: object, ...fallbacks: object[]) => neededSecrets({ model: { ...model, fallbacks }, tools: [] });
  const name = 'AZURE_OPENAI_API_KEY';
  expect(of(azure(own))).toEqual([{ name, cloud: { provider: 'azure', baseUrl: own } }]);
  for (const needed of [
    of(azure(gateway)),
    of(azure('')),
    of(azure(own), azure(gateway)),
    of(azure(gateway), azure(own)),
  ])
    expect(needed).toEqual([{ name }]);
  expect(of(azure(own, 'OURS'))).toEqual([{ name: 'OURS' }]);
});
