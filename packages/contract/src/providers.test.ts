import { describe, expect, test } from 'vitest';
import { baseUrlProblem, isServerOf, type ProviderName, providerFacts } from './providers.ts';

/** Addresses of each cloud's servers, and typing errors at its hosts. */
const clouds: Partial<Record<ProviderName, { servers: string[]; errors: string[] }>> = {
  azure: {
    servers: [
      'https://acme.openai.azure.com/openai/v1',
      'https://acme-eu2.openai.azure.com/openai/v1/?api-version=preview',
      'https://acme.services.ai.azure.com/openai/v1',
      'https://acme.cognitiveservices.azure.com/openai/v1',
      'https://acme.openai.azure.us/openai/v1',
    ],
    errors: [
      'https://acme.openai.azure.com',
      'https://acme.openai.azure.com/v1',
      'https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21',
      'https://acme.openai.azure.com/openai/v1/responses',
      'https://acme.openai.azure.com:8443/openai/v1',
      'https://acme.openia.azure.com/openai/v1',
      'https://openai.azure.com/openai/v1',
      'https://a.b.openai.azure.com/openai/v1',
    ],
  },
  vertex: {
    servers: [
      'https://aiplatform.googleapis.com/v1/publishers/google',
      'https://aiplatform.googleapis.com/v1/projects/acme-1/locations/global/publishers/google/',
      'https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/acme.com:x/locations/europe-west4/publishers/google',
      'https://aiplatform.eu.rep.googleapis.com/v1/projects/acme-1/locations/eu/publishers/google',
    ],
    errors: [
      'https://aiplatform.googleapis.com/v1',
      'https://generativelanguage.googleapis.com/v1beta',
      'https://us-central-aiplatform.googleapis.com/v1/projects/acme-1/locations/us-central/publishers/google',
      'https://us-central1-aiplatform.googleapis.com/v1/projects/acme-1/locations/us-east1/publishers/google',
      'https://us-central1-aiplatform.googleapis.com/v1/projects/acme-1/locations/us-central1',
      'https://us-central1-aiplatform.googleapis.com/v1/projects/acme-1/locations/us-central1/publishers/anthropic',
      'https://us-central1-aiplatfrom.googleapis.com/v1/projects/acme-1/locations/us-central1/publishers/google',
      'https://aiplatform.googleapis.com/v1/projects/acme-1/locations/us-central1/publishers/google',
      'https://aiplatform.us.rep.googleapis.com/v1/projects/acme-1/locations/eu/publishers/google',
    ],
  },
  bedrock: {
    servers: [
      'https://bedrock-runtime.us-east-1.amazonaws.com',
      'https://bedrock-runtime.ap-northeast-3.amazonaws.com/',
      'https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com',
      'https://bedrock-runtime.us-east-2.api.aws',
      'https://bedrock-runtime.cn-north-1.amazonaws.com.cn',
    ],
    errors: [
      'https://bedrock-runtime.us-east.amazonaws.com',
      'https://bedrock-runtime.us_east_1.amazonaws.com',
      'https://bedrock-runtime.amazonaws.com',
      'https://bedrock.us-east-1.amazonaws.com',
      'https://bedrock-runtime.us-east-1.amazonaws.com/v1',
      'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1',
      'https://bedrock-agent-runtime.us-east-1.amazonaws.com',
    ],
  },
};

/** A form, filled in by a customer. */
const filled = (form: string) =>
  form
    .replaceAll('LOCATION', 'us-central1')
    .replaceAll('REGION', 'us-east-1')
    .replaceAll(/[A-Z]+/g, 'acme-1');

describe.each(Object.entries(clouds))('%s', (name, { servers, errors }) => {
  test('has the servers whose address is in its form', () => {
    const form = filled(providerFacts[name as 'azure'].cloud.baseUrlForm);
    for (const url of [form, ...servers]) {
      expect([url, baseUrlProblem(name, url)]).toEqual([url, undefined]);
      expect([url, isServerOf(name, new URL(url))]).toEqual([url, true]);
    }
  });

  test('refuses an address at its hosts that no server has', () => {
    for (const url of errors) {
      expect([url, baseUrlProblem(name, url)]).toEqual([url, expect.stringMatching(/^must be like https:\/\//)]);
      expect([url, isServerOf(name, new URL(url))]).toEqual([url, false]);
    }
  });

  test('takes a gateway, which is not a server of its own', () => {
    const hosts = ['gateway.example.com', 'acme.azure-api.net', 'x.eastus.cloudapp.azure.com', '127.0.0.1:8080'];
    const [server] = servers.map((url) => new URL(url));
    for (const url of [
      ...hosts.map((host) => `https://${host}/v1`),
      `https://${server!.host}.example.com${server!.pathname}`,
    ]) {
      expect([url, baseUrlProblem(name, url)]).toEqual([url, undefined]);
      expect([url, isServerOf(name, new URL(url))]).toEqual([url, false]);
    }
    expect(isServerOf(name, new URL(servers[0]!.replace('https:', 'http:')))).toBe(false);
  });
});

test('an address that is no URL is refused for any provider', () => {
  for (const name of ['azure', 'openai', 'openai-compatible'])
    expect(baseUrlProblem(name, 'api.example.com/v1')).toBe('must be a URL');
});
