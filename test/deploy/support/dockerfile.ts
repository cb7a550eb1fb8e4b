// Reads a Dockerfile, as far as ours go. It refuses what it does not know: a test that passed over an instruction would prove nothing.

export interface Instruction {
  keyword: string;
  /** `--from=console` as `{ from: 'console' }`. */
  flags: Readonly<Record<string, string>>;
  /** What follows the flags. */
  text: string;
}

export interface Stage {
  name: string;
  /** Another stage, or an image. */
  from: string;
  instructions: Instruction[];
}

const KEYWORDS = 'WORKDIR COPY RUN ENV USER VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD'.split(' ');

/** Its stages; the name of the last may be ''. */
export function readDockerfile(text: string): Stage[] {
  const lines = text
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const args = new Map<string, string>();
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, keyword = '', flagged = '', rest = ''] = /^([A-Z]+)((?:\s+--[\w-]+=\S+)*)\s+(.+)$/.exec(line) ?? [];
    const flags = Object.fromEntries(
      [...flagged.matchAll(/--([\w-]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    );
    if (keyword === 'ARG' && stages.length === 0) {
      const [, name = '', value = ''] = /^(\w+)=(\S+)$/.exec(rest) ?? [];
      args.set(name, value);
    } else if (keyword === 'FROM') {
      const [, image = '', name = ''] = /^(\S+)(?: AS ([\w-]+))?$/.exec(rest) ?? [];
      const from = image.replaceAll(/\$\{(\w+)\}/g, (_, arg: string) => args.get(arg) ?? '');
      stages.push({ name, from, instructions: [] });
    } else if (KEYWORDS.includes(keyword) && stages.length > 0) {
      stages.at(-1)!.instructions.push({ keyword, flags, text: rest });
    } else {
      throw new Error(`This instruction is not known here: ${line}`);
    }
  }
  return stages;
}

/** A command in either form: `["node", "x"]`, or a line for a shell. */
export function commandIn(text: string): string[] {
  return text.startsWith('[') ? (JSON.parse(text) as string[]) : ['sh', '-c', text];
}

/** `A=1 B="2 3"` */
export function pairsIn(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)].map(([, name, quoted, plain]) => [name!, quoted ?? plain!]),
  );
}
