// `signalbox logout`: forgets a profile.
import { CommandError, command } from '../command.ts';
import { readProfiles, writeProfiles } from '../profiles.ts';
import { shown } from '../text.ts';

const logout = command({
  name: '',
  summary: 'Forget a stored API key',
  details: 'The key itself stays valid. To end it, delete it in the console or with `signalbox keys delete`.',
  options: {
    profile: { type: 'string', value: 'NAME', about: 'the profile (the current one)', variable: 'SIGNALBOX_PROFILE' },
  },
  examples: [['logout --profile production', 'forget the profile "production"']],
  async run({ values, terminal: { env, stdout } }) {
    const { current, profiles } = readProfiles(env);
    const name = values.profile ?? (env.SIGNALBOX_PROFILE || current);
    const found = name ? profiles.get(name) : undefined;
    if (!name || !found)
      throw new CommandError(name ? `There is no profile "${name}".` : 'There is no current profile.');
    const left = new Map(profiles);
    left.delete(name);
    await writeProfiles(env, { current: current === name ? null : current, profiles: left });
    await stdout.write(`Forgot the profile "${name}". The key ${shown(found.key)} stays valid until you delete it.\n`);
  },
});

export const commands = [logout];
