// Completion scripts from the table of commands. Everything but the names of profiles is in the script, so a Tab starts no process.
import type { Noun, Option } from './command.ts';

/** A command as a shell sees it. */
export interface CompletedCommand {
  noun: string;
  /** Empty for a noun that is itself a command. */
  verb: string;
  summary: string;
  options: readonly (readonly [name: string, option: Pick<Option, 'about' | 'type' | 'choices'>])[];
}

export async function completedCommands(nouns: readonly Noun[]): Promise<CompletedCommand[]> {
  const help = { type: 'boolean', about: 'show this help' } as const;
  const all = nouns.map(async ({ name: noun, load }) =>
    (await load()).map(({ name: verb, summary, options = {} }) => ({
      noun,
      verb,
      summary,
      options: [...Object.entries(options).filter(([, { hidden }]) => !hidden), ['help', help] as const],
    })),
  );
  return (await Promise.all(all)).flat();
}

const pathOf = ({ noun, verb }: CompletedCommand) => (verb === '' ? noun : `${noun} ${verb}`);
const verbsOf = (commands: readonly CompletedCommand[], noun: string) =>
  commands.filter((one) => one.noun === noun && one.verb !== '');
const hasVerbs = (commands: readonly CompletedCommand[], noun: string) => verbsOf(commands, noun).length > 0;
const withChoices = (commands: readonly CompletedCommand[]) =>
  commands.flatMap((one) =>
    one.options.flatMap(([name, { choices }]) => (choices ? [{ path: pathOf(one), name, choices }] : [])),
  );
const profiles = 'signalbox profiles list --quiet 2>/dev/null';

/** In single quotes of a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

export function bashScript(nouns: readonly Noun[], commands: readonly CompletedCommand[]): string {
  const words = (all: readonly string[]) => `COMPREPLY=($(compgen -W ${quoted(all.join(' '))} -- "$cur"))`;
  const verbs = nouns.filter(({ name }) => hasVerbs(commands, name));
  return `# bash completion of signalbox
_signalbox() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  COMPREPLY=()
  # Bash splits --option=value into three words.
  if [[ $prev == '=' ]]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if [[ $cur == '=' ]]; then cur=''; fi
  if ((COMP_CWORD == 1)); then
    ${words(nouns.map(({ name }) => name))}
    return
  fi
  case "$command" in
    ${verbs.map(({ name }) => name).join(' | ')})
      command+=" \${COMP_WORDS[2]}"
      if ((COMP_CWORD == 2)); then
        case "\${COMP_WORDS[1]}" in
${verbs.map(({ name }) => `          ${name}) ${words(verbsOf(commands, name).map(({ verb }) => verb))} ;;`).join('\n')}
        esac
        return
      fi
      ;;
  esac
  case "$command $prev" in
${withChoices(commands)
  .map(({ path, name, choices }) => `    ${quoted(`${path} --${name}`)}) ${words(choices)}; return ;;`)
  .join('\n')}
    *' --profile') COMPREPLY=($(compgen -W "$(${profiles})" -- "$cur")); return ;;
  esac
  if [[ $cur == -* ]]; then
    case "$command" in
${commands.map((one) => `      ${quoted(pathOf(one))}) ${words(one.options.map(([name]) => `--${name}`))} ;;`).join('\n')}
    esac
  fi
}
complete -o default -F _signalbox signalbox
`;
}

export function zshScript(nouns: readonly Noun[], commands: readonly CompletedCommand[]): string {
  const described = (all: readonly (readonly [string, string])[]) =>
    `list=(${all.map(([name, about]) => quoted(`${name.replaceAll(':', '\\:')}:${about}`)).join(' ')})`;
  const verbs = nouns.filter(({ name }) => hasVerbs(commands, name));
  return `#compdef signalbox
# zsh completion of signalbox
_signalbox() {
  local -a list
  local command="$words[2]"
  if ((CURRENT == 2)); then
    ${described(nouns.map(({ name, summary }) => [name, summary]))}
    _describe command list
    return
  fi
  case "$command" in
    ${verbs.map(({ name }) => name).join(' | ')})
      command+=" $words[3]"
      if ((CURRENT == 3)); then
        case "$words[2]" in
${verbs
  .map(
    ({ name }) => `          ${name}) ${described(verbsOf(commands, name).map((one) => [one.verb, one.summary]))} ;;`,
  )
  .join('\n')}
        esac
        _describe command list
        return
      fi
      ;;
  esac
  case "$command $words[CURRENT-1]" in
${withChoices(commands)
  .map(({ path, name, choices }) => `    ${quoted(`${path} --${name}`)}) compadd -- ${choices.join(' ')}; return ;;`)
  .join('\n')}
    *' --profile') compadd -- \${(f)"$(${profiles})"}; return ;;
  esac
  if [[ $PREFIX == -* ]]; then
    case "$command" in
${commands
  .map(
    (one) =>
      `      ${quoted(pathOf(one))}) ${described(one.options.map(([name, { about }]) => [`--${name}`, about]))} ;;`,
  )
  .join('\n')}
    esac
    _describe option list
  else
    _files
  fi
}
if [[ "$funcstack[1]" == _signalbox ]]; then _signalbox "$@"; else compdef _signalbox signalbox; fi
`;
}

export function fishScript(nouns: readonly Noun[], commands: readonly CompletedCommand[]): string {
  const text = (words: string) => `'${words.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const line = (condition: string, rest: string) => `complete -c signalbox -n ${text(condition)} ${rest}`;
  return `# fish completion of signalbox
function __signalbox_at
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end
${[
  ...nouns.map(({ name, summary }) => line('__fish_use_subcommand', `-f -a ${name} -d ${text(summary)}`)),
  ...commands
    .filter(({ verb }) => verb !== '')
    .map(({ noun, verb, summary }) =>
      line(`__signalbox_at ${noun}; and test (count (commandline -opc)) -eq 2`, `-f -a ${verb} -d ${text(summary)}`),
    ),
  ...commands.flatMap((one) =>
    one.options.map(([name, { type, about, choices }]) => {
      const value = choices
        ? `-x -a ${text(choices.join(' '))}`
        : name === 'profile'
          ? `-x -a ${text(`(${profiles})`)}`
          : type === 'boolean'
            ? '-f'
            : '-r';
      return line(`__signalbox_at ${pathOf(one)}`, `-l ${name} ${value} -d ${text(about)}`);
    }),
  ),
].join('\n')}
`;
}
