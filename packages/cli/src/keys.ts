// `signalbox keys create`: makes a key on the host, where being its operator is permission enough.
import { createKeyOnHost, readConfig } from '@signalbox/server';
import { columns, parseOptions } from './usage.ts';

const help = `signalbox keys create [options]

Makes an API key and prints its secret, this once, on the standard output:

  KEY=$(npx signalbox keys create --name first --permission admin)

It works on the data directory or DATABASE_URL of the service, while that runs or while it does not. Whoever has an admin key
lists, changes, rotates and deletes keys by the interface (/api/v1/api_keys, see /docs); so do admins in the console.

${columns([
  ['--name NAME', 'what the key is for'],
  ['--permission read|write|admin', 'what it may do; each includes the ones before it'],
  ['--expires-at TIME', 'from this instant on it is refused, such as 2027-01-31T00:00:00Z; without it, never'],
  ['--environment NAME', 'the only Environment that it reaches; may be given several times'],
  ['--allowed-ip ADDRESS', 'an address or CIDR from which alone it may be used; may be given several times'],
  ['--organization ID', 'whose key it is, where there are several organizations'],
  ['--json', 'prints the whole key as JSON'],
  ['--data-dir DIRECTORY', 'the data directory of the service (./data)'],
])}`;

export async function createKey(args: string[]): Promise<void> {
  const values = parseOptions('keys create', args, {
    name: { type: 'string' },
    permission: { type: 'string' },
    'expires-at': { type: 'string' },
    environment: { type: 'string', multiple: true },
    'allowed-ip': { type: 'string', multiple: true },
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
    expiresAt: values['expires-at'],
    environments: values.environment,
    allowedIps: values['allowed-ip'],
    organization: values.organization,
  });
  process.stdout.write(`${values.json ? JSON.stringify(apiKey) : apiKey.secret}\n`);
  process.stderr.write(
    `Made the ${apiKey.permission} key "${apiKey.name}" (${apiKey.keyId}) of ${organizationId}. ` +
      'Its secret is shown this once.\n',
  );
}
