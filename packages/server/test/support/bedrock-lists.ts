/** Where Bedrock lists models and inference profiles: another server than the one that runs them, with rights of its own. */
import type { IncomingHttpHeaders } from 'node:http';
import { type AwsKey, signatureProblem } from './aws-signature.ts';

export interface ListRequest {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
}

interface ListReply {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

/** With an API key or an access key of the region. */
export function bedrockLists(region: string, key: string | (() => AwsKey)): (request: ListRequest) => ListReply {
  return ({ method, url, headers }) => {
    const refuse = (status: number, exception: string, message: string): ListReply => ({
      status,
      body: { message },
      headers: { 'x-amzn-errortype': `${exception}:http://internal.amazon.com/coral/com.amazon.bedrock/` },
    });
    if (url.host !== `bedrock.${region}.amazonaws.com` || method !== 'GET')
      return refuse(404, 'UnknownOperationException', '');
    if (typeof key === 'string') {
      if (headers.authorization !== `Bearer ${key}`)
        return refuse(403, 'AccessDeniedException', 'Authentication failed: Please make sure your API Key is valid.');
    } else {
      const request = { method, path: url.pathname + url.search, headers: { host: url.host, ...headers }, text: '' };
      const [exception, message] = signatureProblem(request, { key: key(), region, service: 'bedrock' }) ?? [];
      if (exception !== undefined) return refuse(403, exception, message!);
    }
    if (url.pathname === '/foundation-models') return { status: 200, body: { modelSummaries: summaries } };
    if (url.pathname !== '/inference-profiles') return refuse(404, 'UnknownOperationException', '');
    const max = Number(url.searchParams.get('maxResults') ?? 100);
    if (!(max >= 1 && max <= 1000)) return refuse(400, 'ValidationException', 'maxResults must be between 1 and 1000');
    const type = url.searchParams.get('type');
    if (type !== null && !['SYSTEM_DEFINED', 'APPLICATION'].includes(type))
      return refuse(400, 'ValidationException', 'type must satisfy enum value set');
    const found = profiles.filter((one) => type === null || one.type === type);
    return { status: 200, body: { inferenceProfileSummaries: found.slice(0, max) } };
  };
}

const model = (modelId: string, modelName: string, types: string[], more: object = {}) => ({
  modelArn: `arn:aws:bedrock:eu-central-1::foundation-model/${modelId}`,
  modelId,
  modelName,
  providerName: 'Someone',
  inputModalities: ['TEXT'],
  outputModalities: ['TEXT'],
  responseStreamingSupported: true,
  customizationsSupported: [],
  inferenceTypesSupported: types,
  modelLifecycle: { status: 'ACTIVE' },
  ...more,
});

const summaries = [
  model('amazon.nova-lite-v1:0', 'Nova Lite', ['ON_DEMAND']),
  model('amazon.nova-lite-v1:0:24k', 'Nova Lite', ['PROVISIONED']),
  model('anthropic.claude-sonnet-5-5-v1:0', 'Claude Sonnet 5.5', ['INFERENCE_PROFILE']),
  model('amazon.titan-embed-text-v2:0', 'Titan Text Embeddings V2', ['ON_DEMAND'], { outputModalities: ['EMBEDDING'] }),
  model('amazon.rerank-v1:0', 'Rerank', ['ON_DEMAND']),
  model('cohere.spoken-v1', 'Spoken', ['INFERENCE_PROFILE'], { outputModalities: ['SPEECH'] }),
  model('acme.whole-v1', 'Whole responses only', ['ON_DEMAND'], { responseStreamingSupported: false }),
];

const profile = (inferenceProfileId: string, name: string, ids: string[], more: object = {}) => ({
  inferenceProfileName: name,
  description: 'Routes requests.',
  inferenceProfileArn: `arn:aws:bedrock:eu-central-1:123456789012:inference-profile/${inferenceProfileId}`,
  models: ids.map((id) => ({ modelArn: `arn:aws:bedrock:eu-west-1::foundation-model/${id}` })),
  inferenceProfileId,
  status: 'ACTIVE',
  type: 'SYSTEM_DEFINED',
  ...more,
});

const profiles = [
  profile('eu.anthropic.claude-sonnet-5-5-v1:0', 'EU Claude Sonnet 5.5', ['anthropic.claude-sonnet-5-5-v1:0']),
  profile('global.anthropic.claude-opus-5-v1:0', 'Global Claude Opus 5', ['anthropic.claude-opus-5-v1:0']),
  profile('eu.cohere.spoken-v1', 'EU Spoken', ['cohere.spoken-v1']),
  profile('global.cohere.embed-v4:0', 'Global Cohere Embed', ['cohere.embed-v4:0']),
  profile('8a0p2rrg1xyz', 'ours', ['amazon.nova-lite-v1:0'], { type: 'APPLICATION' }),
];

/** What agents can use. */
export const LISTED = [
  ['amazon.nova-lite-v1:0', 'Nova Lite'],
  ['eu.anthropic.claude-sonnet-5-5-v1:0', 'EU Claude Sonnet 5.5'],
  ['global.anthropic.claude-opus-5-v1:0', 'Global Claude Opus 5'],
];
