// What servers require of a request besides a valid body: their address, a key, a model that exists. As they document it.
import { type AwsKey, signatureProblem } from '../aws-signature.ts';
import type { RecordedRequest } from '../provider-server.ts';
import { bedrockError, type Refusal } from './transcript.ts';

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
export function azureEntrance(resource: string, { key, deployment, isToken = () => false }: AzureResource): Entrance {
  return ({ headers, path, body, text }) => {
    if (
      headers.host !== `${resource}.openai.azure.com` ||
      new URL(path, 'http://x').pathname !== '/openai/v1/responses'
    )
      return { status: 404, body: { error: { code: '404', message: 'Resource not found' } } };
    const { authorization, 'api-key': apiKey } = headers;
    if (authorization !== undefined && !isToken(authorization.replace(/^Bearer /, '')))
      return azureError(
        401,
        'Unauthorized',
        'Access token is missing, invalid, audience is incorrect, or have expired.',
      );
    if (authorization === undefined && (key === undefined || apiKey !== key))
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
  /** Undefined: it takes tokens only. */
  key?: string;
  deployment: string;
  /** A token of Entra for the audience of Azure's AI. */
  isToken?(token: string): boolean;
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

/** Vertex AI in a location of a project. It takes the tokens that `isToken` knows, and no API key. */
export function vertexEntrance(
  project: string,
  { location, model, isToken }: { location: string; model: string; isToken(token: string): boolean },
): Entrance {
  const refuse = (code: number, status: string, message: string, reason?: string): Refusal => ({
    status: code,
    body: {
      error: {
        code,
        message,
        status,
        ...(reason && { details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason }] }),
      },
    },
  });
  const publisher = `projects/${project}/locations/${location}/publishers/google`;
  return ({ headers, path, text }) => {
    const { authorization = '', 'x-goog-api-key': apiKey } = headers;
    const [, asked] = /^\/v1\/(.*):streamGenerateContent\?alt=sse$/.exec(path) ?? [];
    if (headers.host !== `${location}-aiplatform.googleapis.com` || asked === undefined)
      return { status: 404, body: '<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>' };
    if (apiKey !== undefined || !isToken(authorization.replace(/^Bearer /, '')))
      return refuse(
        401,
        'UNAUTHENTICATED',
        'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.',
        'ACCESS_TOKEN_TYPE_UNSUPPORTED',
      );
    if (!asked.startsWith(`${publisher}/`))
      return refuse(
        403,
        'PERMISSION_DENIED',
        `Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/${asked}' (or it may not exist).`,
        'IAM_PERMISSION_DENIED',
      );
    if (asked !== `${publisher}/models/${model}`)
      return refuse(
        404,
        'NOT_FOUND',
        `Publisher Model \`${asked}\` was not found or your project does not have access to it.`,
      );
    const [, field] = /"(functionCall|functionResponse)":\{"id"/.exec(text) ?? [];
    return field
      ? refuse(
          400,
          'INVALID_ARGUMENT',
          `Invalid JSON payload received. Unknown name "id" at 'contents[1].parts[0].${field}': Cannot find field.`,
        )
      : undefined;
  };
}

/** Bedrock in a region, with an API key or an access key. */
export function bedrockEntrance(
  region: string,
  { model, apiKey, accessKey }: { model: string; apiKey?: string; accessKey?: () => AwsKey },
): Entrance {
  return (request) => {
    const { headers, path } = request;
    const [, asked] = /^\/model\/([^/]+)\/converse-stream$/.exec(path) ?? [];
    if (headers.host !== `bedrock-runtime.${region}.amazonaws.com` || asked === undefined)
      return bedrockError('', 'UnknownOperationException', 404);
    if (apiKey !== undefined && headers.authorization !== `Bearer ${apiKey}`) {
      const body = { Message: 'Authentication failed: Please make sure your API Key is valid.' };
      return { status: 403, body };
    }
    const [exception, message] =
      (accessKey && signatureProblem(request, { key: accessKey(), region, service: 'bedrock' })) ?? [];
    if (exception !== undefined) return bedrockError(message!, exception, 403);
    const id = decodeURIComponent(asked);
    // The model itself, not a profile of it.
    if (id !== model && /^(us|eu|apac|global)\./.test(model) && id.split('/').at(-1) === model.replace(/^\w+\./, ''))
      return bedrockError(
        `Invocation of model ID ${id} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`,
      );
    if (id !== model) return bedrockError('The provided model identifier is invalid.', 'ValidationException', 400);
    return undefined;
  };
}
