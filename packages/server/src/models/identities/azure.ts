// The identity at Azure: a workload identity, whose token of the cluster is exchanged for one of Entra (RFC 7523).
import { tokenIn } from '../keys/access-tokens.ts';
import { FORM, requestToken } from '../keys/token-request.ts';
import { bearerKey } from '../model/provider-key.ts';
import { type CloudIdentity, type IdentitySource, tokenInFile, unusable } from './identity.ts';

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

export const azureIdentity: CloudIdentity = {
  // Each national cloud has its own.
  audienceOf: ({ hostname }) => `https://cognitiveservices.azure.${/\.(us|cn)$/.exec(hostname)?.[1] ?? 'com'}`,
  sources: [workload],
  none: 'AZURE_FEDERATED_TOKEN_FILE is not set',
  keyOf: async (token) => bearerKey(token),
};
