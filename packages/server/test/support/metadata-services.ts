/**
 * The metadata services of clouds, at their own addresses, over real http. Each refuses what the real one refuses. They issue what the
 * servers of `clouds.ts` know.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { AwsKey } from './aws-signature.ts';
import { CLIENT, ROLE } from './clouds.ts';

export const TASK_PATH = '/v2/credentials/task-of-acme-project';
export const POD_TOKEN = 'eyJ.pod-token.of-the-cluster';
export const APP_HEADER = 'header-of-acme-project';
const ROLE_NAME = 'acme-agents';

export interface MetadataServices {
  /** For `createMetadata` and `startTestService`: opens connections to metadata services, and others as `net.connect`. */
  open(options: TcpNetConnectOpts): Socket;
  /** `GET 169.254.169.254/latest/…`, the newest last. */
  readonly requests: string[];
  /** Why something was refused, with its status. */
  readonly refused: string[];
  /** Tokens, and keys of AWS, the newest last. */
  readonly issued: (string | AwsKey)[];
  /**
   * What is different now: no response to anything; to no session of EC2, as beyond its hop limit; no connection; no identity of the
   * machine; a status for everything; a failure with the status 200, as EC2 has; something else than the server of Google.
   */
  mode: 'other' | 'usual' | 'silent' | 'hops' | 'away' | 'bare' | 'invalid' | number;
  lifetimeMs: number;
  readonly now: () => number;
  /** Where they are on this machine, for what has no fixed address. */
  readonly localPort: number;
  close(): Promise<void>;
}

interface Asked {
  host: string;
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
}
interface Reply {
  status: number;
  body: object | string;
  headers?: Record<string, string>;
}

const ADDRESSES = new Set([
  '169.254.169.254',
  'fd00:ec2::254',
  'fd20:ce::254',
  '169.254.170.2',
  '169.254.170.23',
  'fd00:ec2::23',
]);

/** `issued`: by the servers of `clouds.ts`, too. */
export async function startMetadataServices({
  issued = [],
  now = Date.now,
}: {
  issued?: (string | AwsKey)[];
  now?: () => number;
} = {}): Promise<MetadataServices> {
  const sessions = new Set<string>();
  const server = createServer((request, response) => {
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '/', `http://${headers.host}`);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    services.requests.push(`${method} ${host}${url.pathname}`);
    const { mode } = services;
    if (mode === 'silent' || (mode === 'hops' && method === 'PUT')) return;
    const asked = { host, method, url, headers };
    const reply = typeof mode === 'number' ? { status: mode, body: `of ${ROLE}` } : replyTo(services, sessions, asked);
    const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
    if (reply.status !== 200) services.refused.push(`${reply.status} ${text}`);
    response.writeHead(reply.status, {
      'content-type': typeof reply.body === 'string' ? 'text/plain' : 'application/json',
      ...reply.headers,
    });
    response.end(text);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const services: MetadataServices = {
    localPort: port,
    now,
    open(options) {
      const { host = '' } = options;
      if (!ADDRESSES.has(host)) return connect(options);
      const isThere = services.mode !== 'away' && options.port === 80;
      // Port 1 has no server.
      const socket = connect({
        ...options,
        host: '127.0.0.1',
        port: isThere ? port : 1,
        lookup: undefined,
      } as TcpNetConnectOpts);
      return Object.defineProperty(socket, 'remoteAddress', { value: host });
    },
    requests: [],
    refused: [],
    issued,
    mode: 'usual',
    lifetimeMs: 3_600_000,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return services;
}

function replyTo(services: MetadataServices, sessions: Set<string>, asked: Asked): Reply {
  const { host, url } = asked;
  if (url.pathname.startsWith('/computeMetadata/')) return google(services, asked);
  if (url.pathname.startsWith('/metadata/')) return azure(services, asked);
  if (url.pathname === '/msi/token') return app(services, asked);
  if (host === '169.254.170.2') return ecs(services, asked);
  if (host === '169.254.170.23' || host === 'fd00:ec2::23' || url.pathname === '/v1/credentials')
    return eks(services, asked);
  return ec2(services, sessions, asked);
}

/** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html */
function ec2(services: MetadataServices, sessions: Set<string>, { method, url, headers }: Asked): Reply {
  const path = url.pathname;
  if (path === '/latest/api/token') {
    if (method !== 'PUT') return { status: 405, body: 'Method Not Allowed' };
    if (headers['x-forwarded-for'] !== undefined) return { status: 403, body: 'Forbidden' };
    const ttl = Number(headers['x-aws-ec2-metadata-token-ttl-seconds']);
    if (!(Number.isInteger(ttl) && ttl >= 1 && ttl <= 21_600)) return { status: 400, body: 'Bad Request' };
    const session = `AQAEALsession-${sessions.size + 1}==`;
    sessions.add(session);
    return { status: 200, body: session, headers: { 'x-aws-ec2-metadata-token-ttl-seconds': String(ttl) } };
  }
  if (method !== 'GET') return { status: 405, body: 'Method Not Allowed' };
  // The instance requires the second version.
  if (!sessions.has(String(headers['x-aws-ec2-metadata-token']))) return { status: 401, body: 'Unauthorized' };
  const roles = '/latest/meta-data/iam/security-credentials/';
  if (services.mode === 'bare' || !path.startsWith(roles)) return { status: 404, body: 'Not Found' };
  if (path === roles) return { status: 200, body: ROLE_NAME };
  if (path !== `${roles}${ROLE_NAME}`) return { status: 404, body: 'Not Found' };
  if (services.mode === 'invalid')
    return {
      status: 200,
      body: { Code: 'AssumeRoleUnauthorizedAccess', Message: `EC2 cannot assume the role ${ROLE}` },
    };
  const { SessionToken: Token, ...key } = issueKey(services);
  return { status: 200, body: { Code: 'Success', Type: 'AWS-HMAC', ...key, Token, Expiration: endOf(services) } };
}

/** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html */
function ecs(services: MetadataServices, { method, url }: Asked): Reply {
  if (method !== 'GET' || url.pathname !== TASK_PATH)
    return { status: 400, body: { code: 'InvalidIdInRequest', message: `Credentials not found for ${ROLE}` } };
  return container(services);
}

/** https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html */
function eks(services: MetadataServices, { method, url, headers }: Asked): Reply {
  if (method !== 'GET' || url.pathname !== '/v1/credentials') return { status: 404, body: '404 page not found' };
  if (headers.authorization === undefined) return { status: 400, body: 'Service account token cannot be empty' };
  if (headers.authorization !== POD_TOKEN) return { status: 403, body: `AccessDeniedException: ${ROLE}` };
  return container(services);
}

function container(services: MetadataServices): Reply {
  const { SessionToken: Token, ...key } = issueKey(services);
  return { status: 200, body: { RoleArn: ROLE, ...key, Token, Expiration: endOf(services) } };
}

/** https://cloud.google.com/compute/docs/metadata/querying-metadata */
function google(services: MetadataServices, { method, url, headers }: Asked): Reply {
  const flavor = services.mode === 'other' ? {} : { 'metadata-flavor': 'Google' };
  const refuse = (status: number, body: string): Reply => ({ status, body, headers: flavor });
  if (headers['metadata-flavor'] !== 'Google') return refuse(403, 'Missing Metadata-Flavor:Google header.');
  if (headers['x-forwarded-for'] !== undefined) return refuse(403, 'Request has X-Forwarded-For.');
  if (method !== 'GET') return refuse(405, 'Method Not Allowed');
  if (services.mode === 'bare' || url.pathname !== '/computeMetadata/v1/instance/service-accounts/default/token')
    return refuse(404, 'The requested URL was not found on this server.');
  if (url.searchParams.get('scopes') !== 'https://www.googleapis.com/auth/cloud-platform')
    return refuse(400, 'Invalid scopes.');
  const token = issueToken(services, 'google');
  const body = { access_token: token, expires_in: services.lifetimeMs / 1000, token_type: 'Bearer' };
  return { status: 200, body, headers: flavor };
}

/** https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token */
function azure(services: MetadataServices, { method, url, headers }: Asked): Reply {
  const refuse = (error: string, why: string): Reply => ({ status: 400, body: { error, error_description: why } });
  if (headers.metadata !== 'true') return refuse('invalid_request', 'Required metadata header not specified');
  if (headers['x-forwarded-for'] !== undefined) return refuse('invalid_request', 'X-Forwarded-For is not allowed');
  if (method !== 'GET') return { status: 405, body: 'Method Not Allowed' };
  if (url.pathname !== '/metadata/identity/oauth2/token') return { status: 404, body: 'Not Found' };
  if (url.searchParams.get('api-version') !== '2018-02-01') return refuse('bad_request', 'Invalid api-version');
  if (services.mode === 'bare') return refuse('invalid_request', `Identity not found for ${CLIENT}`);
  return managed(services, url, { expires_in: String(services.lifetimeMs / 1000) });
}

/** https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference */
function app(services: MetadataServices, { method, url, headers }: Asked): Reply {
  if (headers['x-identity-header'] !== APP_HEADER) return { status: 401, body: { statusCode: 401, message: CLIENT } };
  if (method !== 'GET' || url.searchParams.get('api-version') !== '2019-08-01')
    return { status: 400, body: { statusCode: 400, message: 'Unsupported api-version' } };
  return managed(services, url, {});
}

function managed(services: MetadataServices, url: URL, lifetime: object): Reply {
  const resource = url.searchParams.get('resource');
  const client = url.searchParams.get('client_id');
  if (resource !== 'https://cognitiveservices.azure.com')
    return { status: 400, body: { error: 'invalid_resource', error_description: `AADSTS500011: ${resource}` } };
  if (client !== null && client !== CLIENT)
    return { status: 400, body: { error: 'invalid_request', error_description: 'Identity not found' } };
  const expires = { expires_on: String(Math.floor((services.now() + services.lifetimeMs) / 1000)), ...lifetime };
  const access = { access_token: issueToken(services, 'azure'), token_type: 'Bearer', client_id: CLIENT, resource };
  return { status: 200, body: { ...access, ...expires } };
}

function issueToken({ issued }: MetadataServices, by: string): string {
  const token = `${by}.metadata.issued-${issued.length + 1}`;
  issued.push(token);
  return token;
}

function issueKey({ issued }: MetadataServices): Required<AwsKey> {
  const n = issued.length + 1;
  const key = {
    AccessKeyId: `ASIAMETADATA${n}`,
    SecretAccessKey: `secret/issued-${n}+of=metadata`,
    SessionToken: `session//issued-${n}==`,
  };
  issued.push(key);
  return key;
}

function endOf({ lifetimeMs, now }: MetadataServices): string {
  return new Date(now() + lifetimeMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
