// Packs built folders for npm, and checks what was packed.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { readManifest } from './packages.ts';

export interface Packed {
  name: string;
  version: string;
  /** The path of the tarball. */
  file: string;
  /** What is in it, as paths in the package. */
  files: string[];
}

/** In the order of the folders. */
export function packFolders(folders: readonly string[], destination: string): Packed[] {
  const listed = npm(['pack', '--json', '--ignore-scripts', '--pack-destination', destination, ...folders]);
  const all = Object.values(JSON.parse(listed) as object) as {
    name: string;
    version: string;
    filename: string;
    files: { path: string }[];
  }[];
  return folders.map((folder) => {
    const { name, version, filename, files } = all.find((one) => one.name === readManifest(folder).name)!;
    return { name, version, file: join(destination, filename), files: files.map(({ path }) => path).sort() };
  });
}

/** What publint and attw find wrong with a package. attw: whether every way to import it finds code and types. */
export async function problemsOf(folder: string, { name, file }: Packed): Promise<string[]> {
  const manifest = readManifest(folder);
  const { messages, pkg } = await publint({ pkgDir: folder, strict: true, pack: false });
  const problems = messages.map((message) => `${name}: ${formatMessage(message, pkg, { color: false })}`);
  if (manifest.exports['.'] !== undefined) {
    const attw = createRequire(import.meta.url).resolve('@arethetypeswrong/cli/package.json');
    const args = [join(dirname(attw), 'dist/index.js'), file, '--profile', 'esm-only', '--no-color', '--no-emoji'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) problems.push(`${name}: ${stdout}${stderr}`);
  }
  return problems;
}

/** Runs the npm that runs this program, as another one may be first in PATH. */
export function npm(args: string[], cwd?: string): string {
  const script = process.env.npm_execpath;
  const { status, stdout, stderr, error } = script
    ? spawnSync(process.execPath, [script, ...args], { cwd, encoding: 'utf8', maxBuffer: 1 << 26 })
    : spawnSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`npm ${args[0]} failed: ${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`);
  return stdout;
}
