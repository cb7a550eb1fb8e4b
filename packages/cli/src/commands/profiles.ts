// `signalbox profiles …`: lists and selects what `signalbox login` stored. Keys are never shown.
import { CommandError, command } from '../command.ts';
import { readProfiles, writeProfiles } from '../profiles.ts';
import { Table } from '../table.ts';
import { shown } from '../text.ts';

const list = command({
  name: 'list',
  summary: 'List the stored profiles',
  options: {
    json: { type: 'boolean', about: 'print one JSON object per line' },
    quiet: { type: 'boolean', short: 'q', about: 'print only their names, one per line' },
  },
  examples: [['profiles list', 'which services there are, and which one is used']],
  async run({ values, terminal: { env, stdout, stderr } }) {
    const { current, profiles } = readProfiles(env);
    const rows = [...profiles].map(([profile, { url, organization, key }]) => ({
      profile,
      url,
      organization,
      key,
      isCurrent: profile === current,
    }));
    if (values.json) return stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    if (values.quiet) return stdout.write(rows.map(({ profile }) => `${profile}\n`).join(''));
    if (rows.length === 0) return stderr.write('None. Run: signalbox login\n');
    await new Table<(typeof rows)[number]>(stdout, [
      { header: '', cell: ({ isCurrent }) => (isCurrent ? '*' : '') },
      { header: 'PROFILE', cell: ({ profile }) => profile },
      { header: 'SERVICE', cell: ({ url }) => url },
      { header: 'ORGANIZATION', cell: ({ organization }) => shown(organization), shrinks: true },
      { header: 'KEY', cell: ({ key }) => shown(key), shrinks: true },
    ]).print(rows);
  },
});

const use = command({
  name: 'use',
  summary: 'Use a profile from now on',
  arguments: { profile: { about: 'its name' } },
  examples: [['profiles use production', 'for all commands that name no other']],
  async run({ args, terminal: { env, stdout } }) {
    const stored = readProfiles(env);
    const found = stored.profiles.get(args.profile);
    if (!found) {
      const names = [...stored.profiles.keys()].join(', ');
      throw new CommandError(`There is no profile "${args.profile}"${names ? `; there are ${names}` : ''}.`);
    }
    await writeProfiles(env, { ...stored, current: args.profile });
    await stdout.write(`Using ${shown(found.organization)} at ${found.url}.\n`);
  },
});

export const commands = [list, use];
