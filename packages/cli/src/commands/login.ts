// `signalbox login`: stores the URL and the API key of a service as a profile.
import { Signalbox, version } from '@signalbox/client';
import { CommandError, command, UsageError } from '../command.ts';
import { defaultProfile, defaultUrl, readProfiles, writeProfiles } from '../profiles.ts';
import { ask, askSecret } from '../prompt.ts';
import { shown } from '../text.ts';

const login = command({
  name: '',
  summary: 'Store an API key, and use it from now on',
  details:
    'Asks for the URL of the service and for an API key, which is not shown, tries the key, and stores both as a profile in ' +
    '~/.config/signalbox/profiles.json (or below XDG_CONFIG_HOME), readable only by you. Without a terminal, the key is read from ' +
    'standard input. SIGNALBOX_API_KEY takes precedence over profiles.',
  options: {
    url: { type: 'string', value: 'URL', about: `the service (${defaultUrl()})`, variable: 'SIGNALBOX_URL' },
    profile: {
      type: 'string',
      value: 'NAME',
      about: `the name of the profile (${defaultProfile})`,
      variable: 'SIGNALBOX_PROFILE',
    },
  },
  examples: [
    ['login', 'asks for everything'],
    ['login --profile production --url https://signalbox.example.com < key.txt', 'a second service'],
  ],
  operations: ['getMe'],
  async run({ values, terminal, command: name }) {
    const { env, stdin, stderr, stdout } = terminal;
    const profile = values.profile ?? (env.SIGNALBOX_PROFILE || defaultProfile);
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(profile))
      throw new UsageError(`${name}: --profile must be letters, digits, ".", "_" and "-"`, `${name} --help`);
    const { profiles } = readProfiles(env);
    const known = values.url ?? (env.SIGNALBOX_URL || undefined);
    const suggested = profiles.get(profile)?.url ?? defaultUrl(env);
    const url = known ?? (stdin.isTTY ? await ask(terminal, 'Service', suggested) : suggested);
    const origin = URL.canParse(url) && /^https?:/.test(url) ? new URL(url).href.replace(/\/$/, '') : undefined;
    if (!origin || /[?#]/.test(origin) || new URL(origin).username || new URL(origin).password) {
      throw new UsageError(
        `${name}: --url must be the URL of a service, without a password, a query or a fragment`,
        `${name} --help`,
      );
    }
    if (stdin.isTTY) {
      await stderr.write(`Create a key at ${origin}/console/keys, or on its host with \`signalbox keys create\`.\n`);
    }
    const apiKey = await askSecret(terminal, 'API key');
    if (!apiKey) throw new CommandError('No API key was given.');
    const me = await new Signalbox({ apiKey, baseUrl: origin, userAgent: `signalbox-cli/${version}` }).me();
    if (!me.apiKey) throw new CommandError('This is not an API key.');
    const key = `${me.apiKey.name} (${me.apiKey.keyId})`;
    const organization = me.organization.name;
    const stored = new Map(profiles).set(profile, { url: origin, apiKey, key, organization });
    const file = await writeProfiles(env, { current: profile, profiles: stored });
    await stdout.write(`Logged in to ${shown(organization)} at ${origin} with the key ${shown(key)}.\n`);
    await stderr.write(`Stored as the profile "${profile}" in ${file}.\n`);
    if (env.SIGNALBOX_API_KEY)
      await stderr.write('SIGNALBOX_API_KEY is set and takes precedence: unset it to use the profile.\n');
    if (!isPrivate(origin)) await stderr.write('This URL is not https: the key travels unencrypted.\n');
  },
});

export const commands = [login];

function isPrivate(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
