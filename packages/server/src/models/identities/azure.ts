// The identity at Azure: a workload identity, whose token of the cluster is exchanged for one of Entra (RFC 7523), or the managed identity
// of the app or the machine.
import { type AccessToken, tokenIn } from '../keys/access-tokens.ts';
import { FORM, recordIn, requestToken } from '../keys/token-request.ts';
import { bearerKey } from '../model/provider-key.ts';
import { type CloudIdentity, type IdentityContext, type IdentitySource, tokenInFile, unusable } from './identity.ts';
import type { MetadataService } from './metadata.ts';

const ISSUER = { name: 'Entra', label: 'the workload identity' };
const AUTHORITY = 'https://login.microsoftonline.com';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const workload: IdentitySource = {
  mark: 'AZURE_FEDERATED_TOKEN_FILE',
  isHere: ({ AZURE_FEDERATED_TOKEN_FILE: file }) => file !== undefined,
  async request({ variables, egress, now }, audience) {
    const { AZURE_FEDERATED_TOKEN_FILE: file, AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client } = variables;
    const { AZURE_AUTHORITY_HOST: authority = AUTHORITY } = variables;
    if (file === undefined || tenant === undefined || client === undefined)
      throw unusable('AZURE_FEDERATED_TOKEN_FILE is not set');
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client,
      scope: `${audience}/.default`,
      client_assertion_type: ASSERTION_TYPE,
      client_assertion: await tokenInFile(file, 'AZURE_FEDERATED_TOKEN_FILE'),
    });
    const url = new URL(`/${tenant}/oauth2/v2.0/token`, authority).href;
    const headers = { ...FORM, Accept: 'application/json' };
    return tokenIn(
      await requestToken(egress, ISSUER, { method: 'POST', url, headers, body: form.toString() }),
      ISSUER.name,
      now,
    );
  },
};

const ASSIGN = 'assign it a managed identity, and set AZURE_CLIENT_ID if it is not the one of the system';
const APP = {
  name: 'The identity server of the app',
  label: 'its managed identity',
  unreachable: 'check IDENTITY_ENDPOINT',
  advice: { 400: ASSIGN, 401: 'check IDENTITY_HEADER', 403: 'check IDENTITY_HEADER', 404: ASSIGN },
};
const MACHINE = {
  name: 'The metadata service of Azure',
  label: 'the managed identity of this machine',
  unreachable: 'check firewalls and network policies, which must allow 169.254.169.254',
  advice: { 400: ASSIGN, 403: 'a proxy passes the request on, or the identity may not be used from here' },
  // While the service is updated.
  later: [404, 410],
};

/** An app of App Service or Container Apps. */
const app: IdentitySource = {
  mark: 'IDENTITY_ENDPOINT',
  isHere: ({ IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header }) => endpoint !== undefined && header !== undefined,
  async request(context, audience) {
    const { IDENTITY_ENDPOINT: endpoint = '', IDENTITY_HEADER: header = '' } = context.variables;
    const query = { 'api-version': '2019-08-01', resource: audience };
    return await managedToken(context, APP, { endpoint, query, headers: { 'X-IDENTITY-HEADER': header } });
  },
};

const machineIdentity: IdentitySource = {
  mark: 'the managed identity of this machine',
  isHere: ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: host }, machine) => machine === 'azure' || host !== undefined,
  async request(context, audience) {
    const endpoint = 'http://169.254.169.254/metadata/identity/oauth2/token';
    const query = { 'api-version': '2018-02-01', resource: audience };
    return await managedToken(context, MACHINE, { endpoint, query, headers: { Metadata: 'true' } });
  },
};

async function managedToken(
  { variables, metadata, now }: IdentityContext,
  service: MetadataService,
  { endpoint, query, headers }: { endpoint: string; query: Record<string, string>; headers: Record<string, string> },
): Promise<AccessToken> {
  const { AZURE_CLIENT_ID: client } = variables;
  const url = new URL(endpoint);
  for (const [name, value] of Object.entries({ ...query, ...(client !== undefined && { client_id: client }) }))
    url.searchParams.set(name, value);
  const response = await metadata.request(service, { method: 'GET', url: url.href, headers });
  const body = response.body.toString('utf8');
  const token = tokenIn(body, service.name, now);
  // Apps get no lifetime, only the end, in seconds since 1970.
  const end = Number(recordIn(body).expires_on);
  return Number.isSafeInteger(end) && end > 0 ? { ...token, expiresAt: end * 1000 } : token;
}

export const azureIdentity: CloudIdentity = {
  // Each national cloud has its own.
  audienceOf: ({ hostname }) => `https://cognitiveservices.azure.${/\.(us|cn)$/.exec(hostname)?.[1] ?? 'com'}`,
  sources: [workload, app, machineIdentity],
  none: 'neither AZURE_FEDERATED_TOKEN_FILE nor IDENTITY_ENDPOINT with IDENTITY_HEADER is set, and this is not known to be a machine of Azure (if it is one, set AZURE_POD_IDENTITY_AUTHORITY_HOST=http://169.254.169.254)',
  keyOf: async (token) => bearerKey(token),
};
