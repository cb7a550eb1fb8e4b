import { expect, test } from 'vitest';
import { parseCloudIdentities } from './cloud-identities.ts';

const ORG = 'org_01k2j8z5w3e9r7t1y6v4q0m8n2';
const OTHER = 'org_01k2j8z5w3e9r7t1y6v4q0m8n3';

test('environments are listed with their organization, and variables are read only if there are any', () => {
  const env = { AZURE_CLIENT_ID: ' client ', AWS_ROLE_ARN: '', GOOGLE_APPLICATION_CREDENTIALS: '/file', OTHER: 'x' };
  const { environments, variables } = parseCloudIdentities(` ${ORG}/production, ${OTHER}/eu_1-a,`, env);
  expect(environments.map(({ environment, entry }) => [environment, entry])).toEqual([
    ['production', `${ORG}/production`],
    ['eu_1-a', `${OTHER}/eu_1-a`],
  ]);
  expect(new Set(environments.map(({ organizationId }) => organizationId)).size).toBe(2);
  expect(variables).toEqual({ AZURE_CLIENT_ID: 'client', GOOGLE_APPLICATION_CREDENTIALS: '/file' });
  for (const text of ['', ' ,, ']) expect(parseCloudIdentities(text, env)).toEqual({ environments: [], variables: {} });
});

test.each([
  'production',
  ORG,
  `${ORG}/`,
  `${ORG}/*`,
  '*',
  '*/production',
  `${ORG}/Production`,
  `${ORG}/production/x`,
  `${ORG} /production`,
  `${ORG.slice(0, -1)}/production`,
  `${ORG.toUpperCase()}/production`,
  `key_01k2j8z5w3e9r7t1y6v4q0m8n2/production`,
  '01982488-b37c-7000-8000-000000000000/production',
])('%s is refused', (entry) => {
  expect(() => parseCloudIdentities(`${OTHER}/a, ${entry}`, {})).toThrow(`"${entry}" is not an environment`);
});

test('an identity that is described in part, or wrongly, is refused without its values', () => {
  const problemsWith = (env: Record<string, string>) => {
    try {
      parseCloudIdentities(`${ORG}/production`, env);
      return [];
    } catch (error) {
      return (error as AggregateError).errors.map(({ message }: Error) => message);
    }
  };
  expect(problemsWith({ AZURE_FEDERATED_TOKEN_FILE: '/f', AZURE_CLIENT_ID: 'c' })).toEqual([
    'AZURE_FEDERATED_TOKEN_FILE needs AZURE_TENANT_ID',
  ]);
  expect(problemsWith({ AWS_WEB_IDENTITY_TOKEN_FILE: '/f' })).toEqual([
    'AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN',
  ]);
  for (const host of ['localhost', '127.0.0.9:80', '[::1]:1338'])
    expect(problemsWith({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://${host}/x` })).toEqual([
      'AWS_CONTAINER_CREDENTIALS_FULL_URI at this machine needs AWS_CONTAINER_AUTHORIZATION_TOKEN',
    ]);
  for (const [name, value, why] of [
    ['AZURE_TENANT_ID', 'hunter2/../x', 'the id of a tenant'],
    ['AZURE_AUTHORITY_HOST', 'http://hunter2', 'the https address of a host'],
    ['AZURE_AUTHORITY_HOST', 'https://hunter2/path', 'the https address of a host'],
    ['AWS_ROLE_ARN', 'hunter2', 'the ARN of a role'],
    ['AWS_REGION', 'hunter2.example.com', 'a region'],
    ['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', '@hunter2/x', 'a path'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'https://hunter2.example.com/x', 'an http URL at'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://169.254.169.254/hunter2', 'an http URL at'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://169.254.170.2@hunter2.example.com/', 'an http URL at'],
    ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://127.0.0.1:99999/hunter2', 'an http URL at'],
    ['AWS_EC2_METADATA_SERVICE_ENDPOINT', 'http://hunter2', 'http://169.254.169.254 or'],
    ['AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE', 'hunter2', 'IPv4 or IPv6'],
    ['AWS_EC2_METADATA_DISABLED', 'hunter2', 'true or false'],
    ['AZURE_POD_IDENTITY_AUTHORITY_HOST', 'http://hunter2', 'http://169.254.169.254'],
    ['IDENTITY_ENDPOINT', 'https://hunter2.example.com/token', 'an http URL at this machine'],
    ['IDENTITY_ENDPOINT', 'http://10.0.0.1/hunter2', 'an http URL at this machine'],
    ['IDENTITY_ENDPOINT', 'http://169.254.1.999/hunter2', 'an http URL at this machine'],
    ['IDENTITY_HEADER', 'hunter2 hunter2', 'a header'],
    ['GCE_METADATA_HOST', 'hunter2:8080', '169.254.169.254 or'],
  ] as const) {
    const [problem, ...others] = problemsWith({ AWS_CONTAINER_AUTHORIZATION_TOKEN: 'token', [name]: value });
    expect(problem).toContain(`${name} is not ${why}`);
    expect(problem).not.toContain('hunter2');
    expect(others).toEqual([]);
  }
});
