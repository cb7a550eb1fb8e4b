import { expect, test } from 'vitest';
import type { ProviderError } from '../model/provider-error.ts';
import { bedrock } from './bedrock.ts';

const explain = (sentence: string, region: string, model = 'anthropic.claude-sonnet-5-5-v1:0') =>
  bedrock.explain?.(
    { sentence } as ProviderError,
    { provider: 'bedrock', model },
    new URL(`https://bedrock-runtime.${region}.amazonaws.com`),
  );
const ON_DEMAND =
  'invocation of model id x with on-demand throughput isn’t supported. retry your request with the id or arn of an inference profile that contains this model.';

test.each([
  ['us-east-1', 'us.', 'global.'],
  ['ca-central-1', 'us.', 'global.'],
  ['eu-central-1', 'eu.', 'global.'],
  ['ap-northeast-3', 'apac.', 'global.'],
  ['us-gov-west-1', 'us-gov.'],
  ['sa-east-1', 'global.'],
])('a model that needs an inference profile is explained with profiles of %s', (region, ...areas) => {
  const ids = areas.map((area) => `${area}anthropic.claude-sonnet-5-5-v1:0`).join(' or ');
  const why = `the model can only be called through an inference profile, such as ${ids}; `;
  for (const sentence of [ON_DEMAND, ON_DEMAND.replace('’', "'")]) expect(explain(sentence, region)).toContain(why);
  const arn = `arn:aws:bedrock:${region}::foundation-model/anthropic.claude-sonnet-5-5-v1:0`;
  expect(explain(ON_DEMAND, region, arn)).toContain(why);
});

test('an unknown model is explained, and nothing else is', () => {
  expect(explain('the provided model identifier is invalid.', 'eu-central-1')).toMatch(/^no model of this region/);
  expect(explain('malformed input request', 'eu-central-1')).toBeUndefined();
});
