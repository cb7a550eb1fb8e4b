// The commands of a page of the documentation, run as they are written there: `docker exec` and `docker compose exec` run the command
// as the container would.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Container, inContainer } from './container.ts';

/** The shell commands of a page, one a line. */
export function documentedCommands(page: string): string[] {
  const text = readFileSync(page, 'utf8');
  const fenced = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!);
  const indented = [...text.matchAll(/(?<=\n\n)(?: {4}\S.*\n(?: {4,}.*\n)*)+/g)].map(([block]) =>
    block.replaceAll(/^ {4}/gm, ''),
  );
  return [...fenced, ...indented]
    .flatMap((block) => block.replaceAll(/\s*\\\n\s*/g, ' ').split('\n'))
    .filter((line) => line.trim() !== '');
}

export interface Shell {
  /** Runs a line, and returns what it printed. */
  run(line: string): string;
}

/** A shell in a folder, in which `docker` knows these containers by their names. */
export function createShell(folder: string, containers: Readonly<Record<string, Container>>): Shell {
  const tools = join(folder, '.tools');
  mkdirSync(tools);
  const state = join(tools, 'containers.json');
  writeFileSync(state, JSON.stringify(containers));
  const program = join(tools, 'docker');
  const script = fileURLToPath(new URL('docker-exec.ts', import.meta.url));
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' '${state}' "$@"\n`);
  chmodSync(program, 0o755);
  return {
    run(line) {
      const { status, stdout, stderr } = spawnSync('sh', ['-euc', line], {
        cwd: folder,
        env: { PATH: `${tools}:${process.env.PATH}` },
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(`${line}\n${stdout}${stderr}`);
      return stdout;
    },
  };
}

/** The exit status of a command in a container. */
export function execIn(container: Container, command: readonly string[]): number | null {
  const { program, args, options } = inContainer(container, command);
  return spawnSync(program, args, { ...options, stdio: 'ignore' }).status;
}
