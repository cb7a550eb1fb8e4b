// What servers require of a request besides a valid body: their address, a key, a model that exists. As they document it.
import type { RecordedRequest } from '../provider-server.ts';
import type { Refusal } from './transcript.ts';

/** Undefined: the request may enter. */
export type Entrance = (request: RecordedRequest) => Refusal | undefined;

/** `endpoint`: host and path. `key`: a bearer token; undefined if it takes none. */
export function bearerEntrance(endpoint: string | undefined, key: string | undefined): Entrance {
  return ({ headers, path }) => {
    if (`${headers.host}${path}` !== endpoint) return { status: 404, body: { detail: 'Not Found' } };
    if (headers.authorization !== (key && `Bearer ${key}`))
      return { status: 401, body: { error: { message: 'Invalid API key', type: 'invalid_request_error' } } };
    return undefined;
  };
}

/** A resource of Azure OpenAI. A bearer token is one of Entra to it, so a key in its place is refused. */
export function azureEntrance(resource: string, { key, deployment, token }: AzureResource): Entrance {
  return ({ headers, path, body, text }) => {
    if (
      headers.host !== `${resource}.openai.azure.com` ||
      new URL(path, 'http://x').pathname !== '/openai/v1/responses'
    )
      return { status: 404, body: { error: { code: '404', message: 'Resource not found' } } };
    const { authorization, 'api-key': apiKey } = headers;
    if (authorization !== undefined && (token === undefined || authorization !== `Bearer ${token}`))
      return azureError(
        401,
        'Unauthorized',
        'Access token is missing, invalid, audience is incorrect, or have expired.',
      );
    if (authorization === undefined && apiKey !== key)
      return azureError(
        401,
        '401',
        'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
      );
    if (body.model !== deployment)
      return azureError(
        404,
        'DeploymentNotFound',
        'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.',
      );
    if (text.includes('a weapon')) return azureFilter;
    return undefined;
  };
}

interface AzureResource {
  key: string;
  deployment: string;
  /** A token of Entra for the audience of Azure's AI. */
  token?: string;
}

function azureError(status: number, code: string, message: string): Refusal {
  return { status, body: { error: { code, message } } };
}

const azureFilter: Refusal = {
  status: 400,
  body: {
    error: {
      message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: {
        code: 'ResponsibleAIPolicyViolation',
        content_filter_result: { violence: { filtered: true, severity: 'high' } },
      },
    },
  },
};
