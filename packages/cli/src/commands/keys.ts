// `signalbox keys …`: creates keys on the host. Access to the host is the only permission needed.
import { command } from '../command.ts';

const create = command({
  name: 'create',
  summary: 'Create an API key and print its secret, which is shown only once',
  details:
    'Uses the data directory or DATABASE_URL of the service, whether or not the service is running. To list, change, rotate and delete keys, use the console, or the API with an admin key (/api/v1/api_keys, see /docs).',
  options: {
    name: { type: 'string', value: 'NAME', about: 'what the key is for' },
    permission: {
      type: 'string',
      value: 'read|write|admin',
      about: 'what it can do; each includes the ones before it',
    },
    scopes: {
      type: 'list',
      value: 'SCOPE,SCOPE',
      about: 'what it can do, instead of a permission, such as sessions:read,approvals:decide',
    },
    'expires-at': {
      type: 'string',
      value: 'TIME',
      about: 'when it expires, such as 2027-01-31T00:00:00Z; without it, never',
    },
    environment: { type: 'string', value: 'NAME', multiple: true, about: 'restrict it to this environment' },
    agents: { type: 'list', value: 'ID,ID', about: 'restrict it to these agents' },
    'allowed-ip': { type: 'string', value: 'ADDRESS', multiple: true, about: 'restrict it to this address or CIDR' },
    'requests-per-minute': {
      type: 'number',
      about: 'how many requests it can make in a minute, on all nodes together',
    },
    'max-cost-usd-per-day': { type: 'number', about: 'what its sessions can cost in a UTC day' },
    organization: { type: 'string', value: 'ID', about: 'the organization, if there are several' },
    json: { type: 'boolean', about: 'print the whole key as JSON' },
    'data-dir': { type: 'string', value: 'DIRECTORY', about: 'the data directory of the service (./data)' },
  },
  examples: [['KEY=$(signalbox keys create --name first --permission admin)', 'create a key and keep its secret']],
  async run({ values, terminal }) {
    const { createKeyOnHost, readConfig } = await import('@signalbox/server');
    const { apiKey, organizationId } = await createKeyOnHost(readConfig({ 'data-dir': values['data-dir'] }), {
      name: values.name,
      permission: values.permission,
      scopes: values.scopes,
      agents: values.agents,
      expiresAt: values['expires-at'],
      environments: values.environment,
      allowedIps: values['allowed-ip'],
      requestsPerMinute: values['requests-per-minute'],
      maxCostUsdPerDay: values['max-cost-usd-per-day'],
      organization: values.organization,
    });
    await terminal.stdout.write(`${values.json ? JSON.stringify(apiKey) : apiKey.secret}\n`);
    await terminal.stderr.write(
      `Created the ${apiKey.permission ?? apiKey.scopes.join(', ')} key "${apiKey.name}" (${apiKey.keyId}) in ${organizationId}. ` +
        'Its secret is shown only once.\n',
    );
  },
});

export const commands = [create];
