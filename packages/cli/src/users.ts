// `signalbox users …`: manages who can sign in to the console. Access to the host is the only permission needed.
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

const help = `Manages who can sign in to the console, on the host of the service. Links are printed to standard output, once. Pass them on
over a channel that no one else can read.

  signalbox users list                            list all users, with role and last sign-in
  signalbox users invite --role ROLE              create an invitation link, valid once within 7 days
  signalbox users reset-password --user USER      create a password reset link, valid once within 24 hours
  signalbox users remove --user USER              remove a user immediately
  signalbox users setup-link                      create a new link for the first user; earlier ones become void

${columns([
  ['--role viewer|member|admin|owner', 'the role of the new user'],
  ['--email EMAIL', 'the only email address that can accept the invitation'],
  ['--name NAME', 'the name of the new user'],
  ['--user USER', 'an email address, or an id usr_…'],
  ['--organization ID', 'the organization, if there are several'],
  ['--json', 'print JSON'],
  ['--data-dir DIRECTORY', 'the data directory of the service (./data)'],
  [
    '--public-url URL',
    'address of the console in links, if not as last announced by the service (SIGNALBOX_PUBLIC_URL)',
  ],
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
  if (!values.json) process.stderr.write(`Valid once, within ${validFor(verb)}.\n`);
}

function validFor(verb: string): string {
  return verb === 'invite' ? '7 days' : '24 hours';
}

/** Resolves to the link, if the command creates one. */
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
