// `signalbox completion`: prints a completion script for a shell.
import { CommandError, command } from '../command.ts';
import { nouns } from '../commands.ts';
import { bashScript, completedCommands, fishScript, zshScript } from '../completion.ts';

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };

const completion = command({
  name: '',
  summary: 'Print a script that completes commands in bash, zsh or fish',
  details:
    'Completes commands, options, their values and the names of profiles. Write the script to where the shell looks for it, and open a ' +
    'new shell. After an upgrade of Signalbox, write it again. The command must be installed as signalbox (npm install -g signalbox).',
  arguments: { shell: { about: 'bash, zsh or fish' } },
  examples: [
    [
      'completion bash > ~/.local/share/bash-completion/completions/signalbox',
      'bash, with the package bash-completion',
    ],
    ['completion zsh > ~/.zfunc/_signalbox', 'zsh, with fpath+=~/.zfunc before compinit in ~/.zshrc'],
    ['completion fish > ~/.config/fish/completions/signalbox.fish', 'fish'],
  ],
  async run({ args, terminal }) {
    const script = Object.entries(scripts).find(([shell]) => shell === args.shell)?.[1];
    if (!script) throw new CommandError(`There is no completion for "${args.shell}"; there is for bash, zsh and fish.`);
    await terminal.stdout.write(script(nouns, await completedCommands(nouns)));
  },
});

export const commands = [completion];
