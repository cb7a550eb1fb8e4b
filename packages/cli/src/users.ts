// `signalbox users …`: who may sign in to the console, managed on the host, where being its operator is permission enough.
import {
  type Config,
  inviteOnHost,
  listUsersOnHost,
  readConfig,
  removeUserOnHost,
  resetPasswordOnHost,
  setupLinkOnHost,
} from '@signalbox/server';
import { columns, parseOptions, shown, UsageError } from './usage.ts';

const help = `Manages who may sign in to the console, on the host of the service. Links are printed on the standard output, once:
hand them over by a way that nobody else reads.

  signalbox users list                            everybody, with role and last sign-in
  signalbox users invite --role ROLE              a link for a new person, valid once and for 7 days
  signalbox users reset-password --user WHO       a link to a new password, valid once and for 24 hours
  signalbox users remove --user WHO               removes a person, at once
  signalbox users setup-link                      another link for the first person; the ones before are void

${columns([
  ['--role viewer|member|admin|owner', 'what the new person may do'],
  ['--email E-MAIL', 'the only e-mail that may accept the invitation'],
  ['--name NAME', 'what the new person is called'],
  ['--user WHO', 'an e-mail, or an id usr_…'],
  ['--organization ID', 'of which organization, where there are several'],
  ['--json', 'prints JSON'],
  ['--data-dir DIRECTORY', 'the data directory of the service (./data)'],
  ['--public-url URL', 'where people open the console, if not where the service last said (SIGNALBOX_PUBLIC_URL)'],
])}`;

export async function users(args: string[]): Promise<void> {
  const [verb = '--help', ...rest] = args;
  const values = parseOptions(`users ${verb}`, verb === '--help' ? ['--help'] : rest, {
    role: { type: 'string' },
    email: { type: 'string' },
    name: { type: 'string' },
    user: { type: 'string' },
    organization: { type: 'string' },
    json: { type: 'boolean' },
    'data-dir': { type: 'string' },
    'public-url': { type: 'string' },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const config = readConfig({ 'data-dir': values['data-dir'], 'public-url': values['public-url'] });
  const link = await actOn(verb, config, values);
  if (link === undefined) return;
  process.stdout.write(`${values.json ? JSON.stringify({ link }) : link}\n`);
  if (!values.json) process.stderr.write(`Good once, for ${validFor(verb)}.\n`);
}

function validFor(verb: string): string {
  return verb === 'invite' ? '7 days' : '24 hours';
}

/** Resolves to the link that was made, where one was. */
async function actOn(
  verb: string,
  config: Config,
  values: { role?: string; email?: string; name?: string; user?: string; organization?: string; json?: boolean },
): Promise<string | undefined> {
  switch (verb) {
    case 'list': {
      const found = await listUsersOnHost(config, values);
      if (values.json) process.stdout.write(`${JSON.stringify(found)}\n`);
      else
        process.stdout.write(
          columns(
            found.map(({ email, name, role, lastSignedInAt }): [string, string] => [
              shown(email),
              `${role.padEnd(6)}   ${shown(name)}, ${lastSignedInAt ? `last signed in at ${lastSignedInAt}` : 'never signed in'}`,
            ]),
          ),
        );
      return undefined;
    }
    case 'invite':
      return inviteOnHost(config, values);
    case 'reset-password':
      return resetPasswordOnHost(config, values);
    case 'setup-link':
      return setupLinkOnHost(config, values);
    case 'remove': {
      const { name, email } = await removeUserOnHost(config, values);
      process.stderr.write(`Removed ${shown(name)} (${shown(email)}).\n`);
      return undefined;
    }
    default:
      throw new UsageError(`users: there is no "${verb}"`, 'users --help');
  }
}
