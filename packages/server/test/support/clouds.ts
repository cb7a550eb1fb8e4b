/**
 * Azure, AWS and Google Cloud at their own names, over TLS: what issues tokens for identities refuses what the real ones refuse, and the
 * servers of models are those of a test.
 */
import { generateKeyPairSync, verify } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Overrides } from '../../src/main.ts';
import type { AwsKey } from './aws-signature.ts';
import { bedrockLists } from './bedrock-lists.ts';
import { certificate, der, extension, SEQUENCE } from './certificate.ts';

export const TENANT = '7d8f0c1e-tenant-of-acme';
export const CLIENT = '51c3b2a0-client-of-acme';
export const ROLE = 'arn:aws:iam::123456789012:role/acme-agents';
export const POOL = '//iam.googleapis.com/projects/424242/locations/global/workloadIdentityPools/acme/providers/k8s';
export const ACCOUNT = 'agents@acme-project.iam.gserviceaccount.com';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** All that no one but the operator may see. */
export const ofTheIdentity =
  /7d8f0c1e|51c3b2a0|123456789012|acme-agents|424242|acme-project|of-the-cluster|issued-|ASIA|federated|AADSTS/;

export interface Clouds {
  /** For `startTestService` and `createEgress`: all names lead here. */
  readonly egress: NonNullable<Overrides['egress']>;
  /** The token of the cluster that they trust now. */
  token: string;
  /** What was issued, the newest last: tokens, and keys of AWS. */
  readonly issued: (string | AwsKey)[];
  /** Why something was refused, with its host. */
  readonly refused: string[];
  /** Responds to all requests for tokens, if set. */
  outage: { status: number; body: string } | undefined;
  /** The server of a model: where requests for a host go. */
  serve(host: string, port: number): void;
  close(): Promise<void>;
}

interface Reply {
  status: number;
  body: object | string;
}
interface Asked {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  text: string;
}

export async function startClouds({ lifetimeMs = 3_600_000 }: { lifetimeMs?: number } = {}): Promise<Clouds> {
  const names = [
    ...['login.microsoftonline.com', 'acme.openai.azure.com'],
    ...['sts.eu-central-1.amazonaws.com', 'bedrock-runtime.eu-central-1.amazonaws.com'],
    'bedrock.eu-central-1.amazonaws.com',
    ...['sts.googleapis.com', 'iamcredentials.googleapis.com', 'oauth2.googleapis.com'],
    'europe-west4-aiplatform.googleapis.com',
  ];
  const { cert, key } = certificateFor(names);
  const models = new Map<string, number>();
  const server = createServer({ cert, key }, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const host = String(request.headers.host);
    const port = models.get(host);
    if (port !== undefined) return pass(request, Buffer.concat(chunks), response, port);
    const url = new URL(request.url ?? '/', `https://${host}`);
    const text = Buffer.concat(chunks).toString();
    const asked = { method: request.method ?? '', url, headers: request.headers, text };
    const { status, body } = clouds.outage ?? replyTo(clouds, asked, lifetimeMs);
    if (status !== 200) clouds.refused.push(`${host}: ${typeof body === 'string' ? body : JSON.stringify(body)}`);
    const isJson = typeof body !== 'string';
    response.writeHead(status, { 'content-type': isJson ? 'application/json' : 'text/xml' });
    response.end(isJson ? JSON.stringify(body) : body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clouds: Clouds = {
    egress: {
      lookup: async () => ['127.0.0.1'],
      open: (options) => connect({ ...options, port: options.port === 443 ? port : options.port }),
      ca: cert,
    },
    token: 'token-1-of-the-cluster',
    issued: [],
    refused: [],
    outage: undefined,
    serve: (host, at) => void models.set(host, at),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return clouds;
}

function replyTo(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const { host } = asked.url;
  if (host === 'login.microsoftonline.com') return entra(clouds, asked, lifetimeMs);
  if (host === 'sts.eu-central-1.amazonaws.com') return awsSts(clouds, asked, lifetimeMs);
  if (host === 'bedrock.eu-central-1.amazonaws.com') return awsLists(clouds, asked);
  if (host === 'sts.googleapis.com') return googleSts(clouds, asked, lifetimeMs);
  if (host === 'iamcredentials.googleapis.com') return impersonation(clouds, asked, lifetimeMs);
  if (host === 'oauth2.googleapis.com') return accountTokens(clouds, asked, lifetimeMs);
  return { status: 404, body: 'Not Found' };
}

function formOf({ method, headers, text }: Asked): URLSearchParams | undefined {
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded';
  return method === 'POST' && isForm ? new URLSearchParams(text) : undefined;
}

/** Entra, for a workload identity: https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow */
function entra(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const refuse = (error: string, code: number, why: string): Reply => ({
    status: error === 'invalid_client' ? 401 : 400,
    body: { error, error_description: `AADSTS${code}: ${why} ${CLIENT} ${TENANT}`, error_codes: [code] },
  });
  const form = formOf(asked);
  if (asked.url.pathname !== `/${TENANT}/oauth2/v2.0/token`)
    return refuse('invalid_request', 90_002, `Tenant '${asked.url.pathname}' not found.`);
  if (!form) return refuse('invalid_request', 900_144, 'The request body must be a form.');
  if (form.get('grant_type') !== 'client_credentials')
    return refuse('unsupported_grant_type', 70_003, 'The app requested an unsupported grant type.');
  if (form.get('client_id') !== CLIENT) return refuse('unauthorized_client', 700_016, 'Application was not found.');
  if (form.get('scope') !== 'https://cognitiveservices.azure.com/.default')
    return refuse('invalid_scope', 70_011, 'The provided value for the input parameter scope is not valid.');
  if (form.get('client_assertion_type') !== 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    return refuse('invalid_request', 700_027, 'client_assertion_type is not supported.');
  if (form.get('client_assertion') !== clouds.token)
    return refuse('invalid_client', 700_024, 'Client assertion is not within its valid time range.');
  const token = issue(clouds, 'entra');
  return { status: 200, body: { token_type: 'Bearer', expires_in: lifetimeMs / 1000, access_token: token } };
}

/** https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html */
function awsSts(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const refuse = (status: number, code: string, why: string): Reply => ({
    status,
    body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${why} ${ROLE}</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
  });
  const form = formOf(asked);
  // It does not take a signature for this call.
  if (!form || asked.headers.authorization !== undefined) return refuse(403, 'AccessDenied', 'Must not be signed');
  if (form.get('Action') !== 'AssumeRoleWithWebIdentity' || form.get('Version') !== '2011-06-15')
    return refuse(400, 'InvalidAction', `Could not find operation ${form.get('Action')}`);
  if (form.get('RoleArn') !== ROLE)
    return refuse(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity');
  if (!/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? ''))
    return refuse(400, 'ValidationError', 'roleSessionName failed to satisfy constraint');
  if (form.get('WebIdentityToken') !== clouds.token)
    return refuse(400, 'ExpiredTokenException', 'Token expired: current date/time must be before the expiration');
  const n = clouds.issued.length + 1;
  const key = {
    AccessKeyId: `ASIAISSUED${n}`,
    SecretAccessKey: `secret/issued-${n}+of=aws`,
    SessionToken: `session//issued-${n}==`,
  };
  clouds.issued.push(key);
  const parts = { ...key, Expiration: new Date(Date.now() + lifetimeMs).toISOString() };
  const xml = Object.entries(parts).map(([name, value]) => `      <${name}>${value}</${name}>`);
  return {
    status: 200,
    body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/acme-agents/x</Arn><AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>
    <Credentials>
${xml.join('\n')}
    </Credentials>
    <Provider>arn:aws:iam::123456789012:oidc-provider/oidc.example.com</Provider>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`,
  };
}

function awsLists({ issued }: Clouds, asked: Asked): Reply {
  const key = () =>
    issued.findLast((one): one is AwsKey => typeof one === 'object') ?? { AccessKeyId: '', SecretAccessKey: '' };
  return bedrockLists('eu-central-1', key)(asked);
}

/** https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token */
function googleSts(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const refuse = (error: string, why: string): Reply => ({
    status: 400,
    body: { error, error_description: `${why} ${POOL}` },
  });
  const form = formOf(asked);
  if (asked.url.pathname !== '/v1/token' || !form) return refuse('invalid_request', 'A form must be posted.');
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:token-exchange')
    return refuse('unsupported_grant_type', 'Invalid grant_type.');
  if (form.get('audience') !== POOL) return refuse('invalid_target', 'The target service indicated is invalid.');
  if (form.get('scope') !== SCOPE) return refuse('invalid_scope', 'Invalid scope.');
  if (form.get('requested_token_type') !== 'urn:ietf:params:oauth:token-type:access_token')
    return refuse('invalid_request', 'Invalid requested_token_type.');
  if (form.get('subject_token_type') !== 'urn:ietf:params:oauth:token-type:jwt')
    return refuse('invalid_request', 'Invalid subject_token_type.');
  if (form.get('subject_token') !== clouds.token) return refuse('invalid_grant', 'The subject token is expired.');
  const body = {
    access_token: issue(clouds, 'federated'),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: lifetimeMs / 1000,
  };
  return { status: 200, body };
}

/** https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken */
function impersonation(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const refuse = (code: number, status: string, why: string): Reply => ({
    status: code,
    body: { error: { code, status, message: `${why} ${ACCOUNT}` } },
  });
  if (asked.url.pathname !== `/v1/projects/-/serviceAccounts/${ACCOUNT}:generateAccessToken`)
    return refuse(404, 'NOT_FOUND', 'Requested entity was not found.');
  if (asked.headers.authorization !== `Bearer ${String(clouds.issued.at(-1))}`)
    return refuse(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
  const { scope, lifetime } = JSON.parse(asked.text || '{}');
  if (asked.headers['content-type'] !== 'application/json' || scope?.[0] !== SCOPE || lifetime !== '3600s')
    return refuse(400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.');
  const expireTime = new Date(Date.now() + lifetimeMs).toISOString();
  return { status: 200, body: { accessToken: issue(clouds, 'impersonated'), expireTime } };
}

/** The key of `ACCOUNT`. */
export const accountKey = generateKeyPairSync('rsa', { modulusLength: 2048 });

function accountTokens(clouds: Clouds, asked: Asked, lifetimeMs: number): Reply {
  const refuse = (error: string, why: string): Reply => ({
    status: 400,
    body: { error, error_description: `${why} ${ACCOUNT}` },
  });
  const assertion = formOf(asked)?.get('assertion') ?? '';
  const [head = '', claims = '', signature = ''] = assertion.split('.');
  const isSigned = verify(
    'RSA-SHA256',
    Buffer.from(`${head}.${claims}`),
    accountKey.publicKey,
    Buffer.from(signature, 'base64url'),
  );
  if (!isSigned) return refuse('invalid_grant', 'Invalid JWT Signature.');
  const { iss, aud, scope } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  if (iss !== ACCOUNT || aud !== asked.url.href || scope !== SCOPE) return refuse('invalid_grant', 'Invalid claims.');
  return { status: 200, body: { access_token: issue(clouds, 'account'), expires_in: lifetimeMs / 1000 } };
}

function issue({ issued }: Clouds, by: string): string {
  const token = `${by}.issued-${issued.length + 1}`;
  issued.push(token);
  return token;
}

/** To the server of a model, which gets the host that was asked for. */
function pass(request: IncomingMessage, body: Buffer, response: ServerResponse, port: number): void {
  const { method = 'GET', url = '/', headers } = request;
  const onward = httpRequest({ host: '127.0.0.1', port, method, path: url, headers }, (reply) => {
    response.writeHead(reply.statusCode ?? 500, reply.headers);
    reply.pipe(response);
  });
  onward.on('error', () => response.destroy());
  onward.end(body);
}

function certificateFor(names: readonly string[]): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const alternatives = extension('551d11', der(SEQUENCE, ...names.map((name) => der(0x82, Buffer.from(name)))));
  const subject = 'clouds of a test';
  const bytes = certificate({
    subject,
    issuer: subject,
    publicKey,
    issuerKey: privateKey,
    extensions: [alternatives],
  });
  const cert = `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  return { cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() };
}
