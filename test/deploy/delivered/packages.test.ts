// What is installed from packages, as they would be published. The images of the project that `npm create signalbox` creates are built and
// run as its README says, and the service of systemd is installed and run as docs/operations/systemd.md says.
import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { Signalbox } from '@signalbox/client';
import { startTemporaryPostgres } from '@signalbox/embedded-postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../../packages/server/test/support/free-port.ts';
import { root } from '../../sources.ts';
import { readCompose } from '../support/compose.ts';
import { endContainer, responds } from '../support/container.ts';
import { createShell, documentedCommands, execIn } from '../support/documented.ts';
import { buildImage, createLocate, createScratch, type Image, npmEnv } from '../support/image.ts';
import { createInstallation, type Installation } from '../support/installation.ts';
import { type Registry, startRegistry } from '../support/registry.ts';
import { startUnit } from '../support/unit.ts';

const scratch = createScratch('packages');
const project = join(scratch, 'my-shop');
const folder = (name: string) => {
  const path = join(scratch, name);
  mkdirSync(path);
  return path;
};
const images: Record<string, Image> = {};
let registry: Registry;
let installation: Installation | undefined;

beforeAll(async () => {
  registry = await startRegistry(folder('packages'));
  const args = ['create', '--yes', 'signalbox@latest', 'my-shop', '--', '--provider', 'scripted'];
  await promisify(execFile)('npm', args, { cwd: scratch, env: { ...npmEnv, ...registry.env } });
  for (const target of ['signalbox', 'app']) {
    images[target] = await buildImage({ context: project, target, scratch: folder(target), env: registry.env });
  }
}, 900_000);
afterAll(async () => {
  await installation?.end();
  await registry.close();
  rmSync(scratch, { recursive: true, force: true });
}, 300_000);

test('the image of the backend does not contain Signalbox, which runs in the other one', () => {
  expect(existsSync(join(images.app!.root, 'app/node_modules/@signalbox/client'))).toBe(true);
  expect(existsSync(join(images.app!.root, 'app/node_modules/signalbox'))).toBe(false);
});

test('the commands of its README start Signalbox and the backend, which serves the chat and receives webhooks', {
  timeout: 300_000,
}, async () => {
  const commands = documentedCommands(join(project, 'README.md'));
  const [createKey = '', subscribe = ''] = commands.filter((line) => line.startsWith('docker compose exec '));
  const secrets = createShell(project, {});
  for (const line of commands.filter((one) => one.startsWith('echo '))) secrets.run(line);
  const compose = () =>
    readCompose(
      join(project, 'compose.yaml'),
      parseEnv(readFileSync(join(project, '.env'), 'utf8')) as Record<string, string>,
    );
  installation = await createInstallation(
    compose,
    {
      signalbox: { image: images.signalbox!, port: 4500, portVariable: 'SIGNALBOX_PORT' },
      app: { image: images.app!, port: 5173, portVariable: 'PORT' },
    },
    folder('compose'),
  );

  await installation.startPostgres('postgres');
  const service = installation.start('signalbox');
  await responds(service, `${installation.url('signalbox')}/readyz`);
  expect(execIn(service.container, installation.healthCheck('signalbox'))).toBe(0);
  const shell = createShell(folder('shell'), { signalbox: service.container });
  const apiKey = shell.run(createKey).trim();
  appendFileSync(join(project, '.env'), `SIGNALBOX_API_KEY=${apiKey}\n`);
  const before = installation.start('app');
  await responds(before, installation.url('app'));
  before.child.kill();
  await endContainer(before);

  const secret = shell.run(installation.here(subscribe).replace('sbk_…', apiKey)).trim();
  appendFileSync(join(project, '.env'), `SIGNALBOX_SIGNING_SECRET=${secret}\n`);
  const app = installation.start('app');
  await responds(app, installation.url('app'));
  expect(await (await fetch(installation.url('app'))).text()).toMatch(/src="\/assets\/index-\S+\.js"/);
  const chat = (await (await fetch(`${installation.url('app')}/api/chat`)).json()) as {
    baseUrl: string;
    agentId: string;
  };
  const token = await (await fetch(`${installation.url('app')}/api/token`, { method: 'POST' })).text();
  const client = new Signalbox({ baseUrl: chat.baseUrl, token: async () => token });
  const { sessionId } = await client.sessions.open({
    agentId: chat.agentId,
    environment: 'production',
    input: 'Hello',
  });
  await expect.poll(() => app.output()).toContain(`webhook: ${sessionId} is waiting`);

  service.child.kill('SIGTERM');
  expect(await service.ended, service.output()).toEqual([0, null]);
});

test('every other command of its README builds or starts services of its compose.yaml', () => {
  const others = documentedCommands(join(project, 'README.md')).filter(
    (line) => !/^(echo|docker compose exec) /.test(line),
  );
  const kinds = [/^npm (install|run dev)$/, /^docker compose up -d( --build( signalbox)?)?$/];
  expect(others.filter((line) => !kinds.some((kind) => kind.test(line)))).toEqual([]);
});

test('the commands of systemd.md install the service, whose unit starts it with its credentials and stops it', {
  timeout: 600_000,
}, async () => {
  const machine = folder('machine');
  const locate = createLocate({ root: machine });
  const commands = documentedCommands(join(root, 'docs/operations/systemd.md'));
  const postgres = await startTemporaryPostgres({ user: 'signalbox', database: 'signalbox', port: 0 });
  const url = 'postgres://signalbox:…@127.0.0.1:5432/signalbox';
  for (const path of ['/etc/systemd/system', '/run']) mkdirSync(locate(path), { recursive: true });
  // The user is that of `startUnit`.
  const setUp = commands
    .slice(0, commands.indexOf('systemctl daemon-reload'))
    .filter((line) => !line.startsWith('useradd '))
    .map(locate)
    .join('\n');
  expect(setUp).toContain(url);
  await promisify(execFile)('sh', ['-euc', setUp.replace(url, postgres.tcpUrl!)], {
    cwd: root,
    env: { ...npmEnv, ...registry.env },
  });
  const port = await freePort();
  writeFileSync(locate('/etc/signalbox/signalbox.env'), `SIGNALBOX_PORT=${port}\n`);

  const service = startUnit(machine, '/etc/systemd/system/signalbox.service');
  try {
    await responds(service, `http://127.0.0.1:${port}/readyz`);
    const createKey = commands.find((line) => line.includes('keys create'))!;
    const { stdout } = await promisify(execFile)('sh', ['-euc', locate(createKey)], { env: npmEnv });
    const client = new Signalbox({ baseUrl: `http://127.0.0.1:${port}`, apiKey: stdout.trim() });
    expect(await client.agents.list()).toMatchObject({ data: [] });
    service.child.kill('SIGTERM');
    expect(await service.ended, service.output()).toEqual([0, null]);
  } finally {
    await endContainer(service);
    await postgres.stop();
  }
});
