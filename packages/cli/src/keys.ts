// `signalbox keys create`: creates a key on the host. Access to the host is the only permission needed.
import { createKeyOnHost, readConfig } from '@signalbox/server';
import { columns, parseOptions } from './usage.ts';

const help = `signalbox keys create [options]

Creates an API key and prints its secret to standard output. The secret is shown only once:

  KEY=$(npx signalbox keys create --name first --permission admin)

Uses the data directory or DATABASE_URL of the service, whether or not the service is running. To list, change, rotate and delete
keys, use the console, or the API with an admin key (/api/v1/api_keys, see /docs).

${columns([
  ['--name NAME', 'what the key is for'],
  ['--permission read|write|admin', 'what it can do; each includes the ones before it'],
  ['--scopes SCOPE,SCOPE', 'what it can do, instead of a permission, such as sessions:read,approvals:decide'],
  ['--expires-at TIME', 'when it expires, such as 2027-01-31T00:00:00Z; without it, never'],
  ['--environment NAME', 'restrict it to this environment; can be repeated'],
  ['--agents ID,ID', 'restrict it to these agents'],
  ['--allowed-ip ADDRESS', 'restrict it to this address or CIDR; can be repeated'],
  ['--requests-per-minute NUMBER', 'how many requests it can make in a minute, on all nodes together'],
  ['--max-cost-usd-per-day NUMBER', 'what its sessions can cost in a UTC day'],
  ['--organization ID', 'the organization, if there are several'],
  ['--json', 'print the whole key as JSON'],
  ['--data-dir DIRECTORY', 'the data directory of the service (./data)'],
])}`;

export async function createKey(args: string[]): Promise<void> {
  const values = parseOptions('keys create', args, {
    name: { type: 'string' },
    permission: { type: 'string' },
    scopes: { type: 'string' },
    agents: { type: 'string' },
    'expires-at': { type: 'string' },
    environment: { type: 'string', multiple: true },
    'allowed-ip': { type: 'string', multiple: true },
    'requests-per-minute': { type: 'string' },
    'max-cost-usd-per-day': { type: 'string' },
    organization: { type: 'string' },
    json: { type: 'boolean' },
    'data-dir': { type: 'string' },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const { apiKey, organizationId } = await createKeyOnHost(readConfig({ 'data-dir': values['data-dir'] }), {
    name: values.name,
    permission: values.permission,
    scopes: listOf(values.scopes),
    agents: listOf(values.agents),
    expiresAt: values['expires-at'],
    environments: values.environment,
    allowedIps: values['allowed-ip'],
    requestsPerMinute: numberOf(values['requests-per-minute']),
    maxCostUsdPerDay: numberOf(values['max-cost-usd-per-day']),
    organization: values.organization,
  });
  process.stdout.write(`${values.json ? JSON.stringify(apiKey) : apiKey.secret}\n`);
  process.stderr.write(
    `Created the ${apiKey.permission ?? apiKey.scopes.join(', ')} key "${apiKey.name}" (${apiKey.keyId}) in ${organizationId}. ` +
      'Its secret is shown only once.\n',
  );
}

function listOf(text: string | undefined): string[] | undefined {
  return text?.split(/[\s,]+/).filter(Boolean);
}

/** What is not a number is refused with the option's name, by the same rules as in the API. */
function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text || Number.NaN);
}
