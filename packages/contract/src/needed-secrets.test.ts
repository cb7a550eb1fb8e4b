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
