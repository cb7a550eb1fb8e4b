// The environments whose agents may use the identity that the machine has at a cloud. SIGNALBOX_CLOUD_IDENTITIES lists them; what the
// identity is follows from the variables of the cloud's own tools.
import { parseId } from '../lib/ids.ts';

/** What is read besides the setting, if it lists any environment. */
const variables = [
  'AZURE_FEDERATED_TOKEN_FILE',
  'AZURE_TENANT_ID',
  'AZURE_CLIENT_ID',
  'AZURE_AUTHORITY_HOST',
  'AZURE_POD_IDENTITY_AUTHORITY_HOST',
  'IDENTITY_ENDPOINT',
  'IDENTITY_HEADER',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_ROLE_ARN',
  'AWS_ROLE_SESSION_NAME',
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_EC2_METADATA_DISABLED',
  'AWS_EC2_METADATA_SERVICE_ENDPOINT',
  'AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'GCE_METADATA_HOST',
] as const;

export type IdentityVariables = { readonly [K in (typeof variables)[number]]?: string };

export interface IdentityEnvironment {
  /** The organization's UUID. */
  readonly organizationId: string;
  readonly environment: string;
  /** As the operator wrote it. */
  readonly entry: string;
}

export interface CloudIdentities {
  readonly environments: readonly IdentityEnvironment[];
  readonly variables: IdentityVariables;
}

/** What must have this form, so that a misspelt one is noticed at the start. No message shows a value: they name the identity. */
const forms: Partial<Record<keyof IdentityVariables, [form: RegExp, what: string]>> = {
  AZURE_TENANT_ID: [/^[A-Za-z0-9.-]{1,100}$/, 'the id of a tenant'],
  AZURE_CLIENT_ID: [/^[A-Za-z0-9-]{1,100}$/, 'the client id of an identity'],
  AZURE_AUTHORITY_HOST: [
    /^https:\/\/[a-z0-9.-]+\/?$/i,
    'the https address of a host, such as https://login.microsoftonline.com',
  ],
  AZURE_POD_IDENTITY_AUTHORITY_HOST: [/^http:\/\/169\.254\.169\.254\/?$/, 'http://169.254.169.254'],
  IDENTITY_ENDPOINT: [
    /^http:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\]|169\.254(\.\d{1,3}){2})(:[1-9]\d{0,4})?\/[\w/.~%?&=+:-]{0,1000}$/,
    'an http URL at this machine',
  ],
  IDENTITY_HEADER: [/^[\x21-\x7e]{1,20000}$/, 'a header that an app gets'],
  GCE_METADATA_HOST: [
    /^(169\.254\.169\.254|metadata\.google\.internal|\[fd20:ce::254\])(:80)?$/,
    '169.254.169.254 or [fd20:ce::254]',
  ],
  AWS_ROLE_ARN: [/^arn:aws[a-z-]*:iam::\d{12}:role\/\S+$/, 'the ARN of a role'],
  AWS_ROLE_SESSION_NAME: [/^[\w+=,.@-]{2,64}$/, 'the name of a session'],
  AWS_REGION: [/^[a-z]{2,3}(-[a-z]+)+-\d{1,2}$/, 'a region'],
  AWS_DEFAULT_REGION: [/^[a-z]{2,3}(-[a-z]+)+-\d{1,2}$/, 'a region'],
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: [/^\/[\w/.~%?&=+:-]{1,1000}$/, 'a path that begins with /'],
  AWS_CONTAINER_CREDENTIALS_FULL_URI: [
    /^http:\/\/(169\.254\.170\.2|169\.254\.170\.23|\[fd00:ec2::23\]|localhost|127(\.\d{1,3}){3}|\[::1\])(:[1-9]\d{0,4})?\/[\w/.~%?&=+:-]{0,1000}$/,
    'an http URL at 169.254.170.2, 169.254.170.23, [fd00:ec2::23] or this machine',
  ],
  AWS_CONTAINER_AUTHORIZATION_TOKEN: [/^[\x20-\x7e]{1,20000}$/, 'a token'],
  AWS_EC2_METADATA_DISABLED: [/^(true|false)$/i, 'true or false'],
  AWS_EC2_METADATA_SERVICE_ENDPOINT: [
    /^http:\/\/(169\.254\.169\.254|\[fd00:ec2::254\])\/?$/,
    'http://169.254.169.254 or http://[fd00:ec2::254]',
  ],
  AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: [/^ipv[46]$/i, 'IPv4 or IPv6'],
};

const needs: readonly [keyof IdentityVariables, readonly (keyof IdentityVariables)[]][] = [
  ['AZURE_FEDERATED_TOKEN_FILE', ['AZURE_TENANT_ID', 'AZURE_CLIENT_ID']],
  ['AWS_WEB_IDENTITY_TOKEN_FILE', ['AWS_ROLE_ARN']],
];

/** `text` lists environments, separated by commas. Throws an AggregateError with every problem. */
export function parseCloudIdentities(text: string, env: Readonly<Record<string, string | undefined>>): CloudIdentities {
  const entries = text.split(',').map((part) => part.trim());
  const problems: Error[] = [];
  const environments = entries
    .filter((entry) => entry !== '')
    .flatMap((entry) => {
      const found = environmentOf(entry);
      if (!found) problems.push(new Error(`"${entry}" is not an environment; use ORGANIZATION_ID/NAME, ${EXAMPLE}`));
      return found ? [found] : [];
    });
  if (environments.length === 0 && problems.length === 0) return { environments, variables: {} };
  const set = variables.flatMap((name) => {
    const value = env[name]?.trim();
    return value ? [[name, value] as const] : [];
  });
  const found: IdentityVariables = Object.fromEntries(set);
  for (const [name, value] of set) {
    const [form, what] = forms[name] ?? [];
    const isUrl = value.startsWith('http');
    if (form && !(form.test(value) && (!isUrl || URL.canParse(value))))
      problems.push(new Error(`${name} is not ${what}`));
  }
  for (const [name, others] of needs) {
    const missing = others.filter((other) => found[other] === undefined);
    if (found[name] !== undefined && missing.length > 0)
      problems.push(new Error(`${name} needs ${missing.join(' and ')}`));
  }
  // An operator may let users call this machine.
  const { AWS_CONTAINER_CREDENTIALS_FULL_URI: container = '', ...token } = found;
  const isHere = /^http:\/\/(localhost|127\.|\[::1)/.test(container);
  if (isHere && !token.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE && !token.AWS_CONTAINER_AUTHORIZATION_TOKEN)
    problems.push(
      new Error('AWS_CONTAINER_CREDENTIALS_FULL_URI at this machine needs AWS_CONTAINER_AUTHORIZATION_TOKEN'),
    );
  if (problems.length > 0) throw new AggregateError(problems, problems.map(({ message }) => message).join('; '));
  return { environments, variables: found };
}

const EXAMPLE = 'such as org_01k2j8z5w3e9r7t1y6v4q0m8n2/production';

function environmentOf(entry: string): IdentityEnvironment | undefined {
  const [, id = '', environment] = /^([^/]+)\/([a-z][a-z0-9_-]{0,62})$/.exec(entry) ?? [];
  const organizationId = parseId('org', id);
  return organizationId === undefined || environment === undefined ? undefined : { organizationId, environment, entry };
}
