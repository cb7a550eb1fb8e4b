// The identity at Google Cloud, as the file of GOOGLE_APPLICATION_CREDENTIALS describes it: a service account with its key, or a workload
// outside of Google, whose own token is exchanged (RFC 8693), and then perhaps for one of a service account. Without the file, it is the
// service account that the machine has.
import { parseJson } from '../../lib/json/json.ts';
import { type AccessToken, isToken, noToken, tokenIn } from '../keys/access-tokens.ts';
import { accountToken, parseServiceAccount, requireProject, SCOPE } from '../keys/service-account.ts';
import { FORM, recordIn, requestToken } from '../keys/token-request.ts';
import { isRecord } from '../model/provider-error.ts';
import { bearerKey } from '../model/provider-key.ts';
import {
  type CloudIdentity,
  type IdentityContext,
  type IdentitySource,
  textOf,
  tokenInFile,
  unusable,
} from './identity.ts';

const FILE = 'GOOGLE_APPLICATION_CREDENTIALS';
const ISSUER = { name: 'Google', label: `the identity of ${FILE}` };
const FLAVOR = { 'Metadata-Flavor': 'Google' };
const TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

const credentialsFile: IdentitySource = {
  mark: FILE,
  isHere: ({ GOOGLE_APPLICATION_CREDENTIALS: path }) => path !== undefined,
  async request(context) {
    const { GOOGLE_APPLICATION_CREDENTIALS: path } = context.variables;
    if (path === undefined) throw unusable(`${FILE} is not set`);
    const text = await textOf(path, FILE);
    const { type } = recordIn(text);
    if (type === 'service_account') return await accountToken(parseServiceAccount(text, FILE), ISSUER.label, context);
    if (type === 'external_account') return await exchanged(externalAccountIn(text), context);
    throw unusable(`${FILE} has neither the key of a service account nor an external_account`);
  },
};

const METADATA = {
  name: 'The metadata server of Google Cloud',
  label: 'the service account of this machine',
  unreachable: 'check firewalls and network policies, which must allow 169.254.169.254',
  advice: {
    403: 'in GKE, check that the pod’s service account may use one of Google (roles/iam.workloadIdentityUser)',
    404: 'give the instance, or the pod’s service account, a service account of Google',
  },
};

const machineAccount: IdentitySource = {
  mark: 'the service account of this machine',
  isHere: ({ GCE_METADATA_HOST: host }, machine) => machine === 'google' || host !== undefined,
  async request({ variables, metadata, now }) {
    const host = /fd20/.test(variables.GCE_METADATA_HOST ?? '') ? '[fd20:ce::254]' : '169.254.169.254';
    const path = '/computeMetadata/v1/instance/service-accounts/default/token';
    const url = `http://${host}${path}?${new URLSearchParams({ scopes: SCOPE })}`;
    const { body, headers } = await metadata.request(METADATA, { method: 'GET', url, headers: FLAVOR });
    // Without it, something else has responded.
    if (headers['metadata-flavor'] !== FLAVOR['Metadata-Flavor']) throw noToken(METADATA.name);
    return tokenIn(body.toString('utf8'), METADATA.name, now);
  },
};

export const googleIdentity: CloudIdentity = {
  audienceOf: () => '',
  sources: [credentialsFile, machineAccount],
  none: `${FILE} is not set, and this is not known to be a machine of Google Cloud (if it is one, set GCE_METADATA_HOST=169.254.169.254)`,
  async keyOf(token, { baseUrl }) {
    requireProject(baseUrl, `${token.label} is used`);
    return bearerKey(token);
  },
};

interface ExternalAccount {
  readonly audience: string;
  readonly tokenUrl: string;
  readonly subjectTokenType: string;
  /** Where the token is exchanged for one of a service account. */
  readonly impersonationUrl: string | undefined;
  readonly file: string;
  /** In which field of the JSON in the file the token is. Undefined: the file is the token. */
  readonly field: string | undefined;
}

function externalAccountIn(text: string): ExternalAccount {
  const {
    audience,
    token_url: tokenUrl,
    subject_token_type: subjectTokenType,
    service_account_impersonation_url: impersonationUrl,
    credential_source: source,
  } = recordIn(text);
  if (typeof audience !== 'string' || typeof subjectTokenType !== 'string' || typeof tokenUrl !== 'string')
    throw unusable(`${FILE} lacks audience, token_url or subject_token_type`);
  const { file, format } = isRecord(source) ? source : {};
  if (typeof file !== 'string') throw unusable(`${FILE} has no credential_source with a file, the only one supported`);
  const { type = 'text', subject_token_field_name: field } = isRecord(format) ? format : {};
  if (type !== 'text' && (type !== 'json' || typeof field !== 'string'))
    throw unusable(`${FILE} has a credential_source with a format other than text or json with its field`);
  return {
    audience,
    tokenUrl,
    subjectTokenType,
    impersonationUrl: typeof impersonationUrl === 'string' ? impersonationUrl : undefined,
    file,
    field: type === 'json' ? String(field) : undefined,
  };
}

async function exchanged(account: ExternalAccount, { egress, now }: IdentityContext): Promise<AccessToken> {
  const { audience, tokenUrl, subjectTokenType, impersonationUrl } = account;
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience,
    scope: SCOPE,
    requested_token_type: TOKEN,
    subject_token_type: subjectTokenType,
    subject_token: await subjectToken(account),
  });
  const json = { Accept: 'application/json' };
  const exchange = { method: 'POST', url: tokenUrl, headers: { ...FORM, ...json }, body: form.toString() };
  const token = tokenIn(await requestToken(egress, ISSUER, exchange), ISSUER.name, now);
  if (impersonationUrl === undefined) return token;
  const body = await requestToken(egress, ISSUER, {
    method: 'POST',
    url: impersonationUrl,
    headers: { ...json, 'Content-Type': 'application/json', Authorization: `Bearer ${token.value}` },
    body: JSON.stringify({ scope: [SCOPE], lifetime: '3600s' }),
  });
  const { accessToken: value, expireTime } = recordIn(body);
  const expiresAt = Date.parse(String(expireTime));
  if (!isToken(value) || Number.isNaN(expiresAt)) throw noToken(ISSUER.name);
  return { value, expiresAt };
}

async function subjectToken({ file, field }: ExternalAccount): Promise<string> {
  const what = `the credential_source of ${FILE}`;
  if (field === undefined) return await tokenInFile(file, what);
  const json = parseJson(await textOf(file, what));
  const token = isRecord(json) ? json[field] : undefined;
  if (!isToken(token)) throw unusable(`${what} has no token in the field that it names`);
  return token;
}
