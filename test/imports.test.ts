// Which package and which folder may import which.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { everything, importsOf, isTest, onlyTypes, root, type Source, server, sources } from './sources.ts';

test('packages import only downward: cli > console and server > client > contract, react > client, and server > embedded-postgres', () => {
  const allowed: Record<string, string[]> = {
    cli: ['console', 'server', 'client', 'contract'],
    console: ['client', 'contract'],
    server: ['contract', 'embedded-postgres'],
    client: [],
    react: ['client'],
    contract: [],
    'embedded-postgres': [],
  };
  const wrong = sources.flatMap((source) => {
    const [, own = ''] = source.file.split('/');
    return importsOf(source)
      .map((specifier) => /^@signalbox\/([\w-]+)/.exec(specifier)?.[1] ?? /^packages\/([\w-]+)\//.exec(specifier)?.[1])
      .filter((name) => name !== undefined && name !== own && !allowed[own]?.includes(name))
      .map((name) => `${source.file} → ${name}`);
  });
  expect(wrong).toEqual([]);
});

test('a published package depends on what it imports', () => {
  const wrong = sources.flatMap((source) => {
    const manifest = manifestAbove(source.file);
    // The console is published as a bundle that contains its dependencies.
    const { dependencies = {}, peerDependencies = {} } =
      manifest.name === '@signalbox/console' ? { dependencies: manifest.devDependencies } : manifest;
    return importedPackages(source)
      .filter((name) => !(name in { ...dependencies, ...peerDependencies }))
      .map((name) => `${source.file} → ${name}`);
  });
  expect(wrong).toEqual([]);
});

// Without it, a package that another one installs is found here, and missing where only this one is installed, as in the image.
test('every file imports only what the manifest above it declares; a test may use the tools of the workspace as well', () => {
  const workspace = manifestAbove('package.json');
  const wrong = everything.filter(isInstalledHere).flatMap((source) => {
    const own = manifestAbove(source.file);
    const isOfWorkspace = own.name === workspace.name;
    const declared = { ...declaredBy(own), ...(isTest(source) && declaredBy(workspace)) };
    return importedPackages(source)
      .filter((name) => !(name in declared || name === own.name || (isOfWorkspace && name.startsWith('@signalbox/'))))
      .map((name) => `${source.file} → ${name}`);
  });
  expect(wrong).toEqual([]);
});

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** The nearest one, which decides what npm installs for the file. */
function manifestAbove(file: string): Manifest {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const path = join(root, folder, 'package.json');
    if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  }
}

const declaredBy = (manifest: Manifest) => ({
  ...manifest.dependencies,
  ...manifest.devDependencies,
  ...manifest.optionalDependencies,
  ...manifest.peerDependencies,
});

/** Not the programs of other products, which `bench/against/install.ts` installs elsewhere. */
const isInstalledHere = ({ file }: Source) => !/^bench\/against\/.*\.mjs$/.test(file);

/** Names of packages in static and dynamic imports. `virtual:` is what a plugin of Vite makes. */
function importedPackages(source: Source): string[] {
  const dynamic = [...source.text.matchAll(/\bimport\(\s*'([^']+)'/g)].map((match) => match[1]!);
  const names = [...importsOf(source), ...dynamic]
    .filter((specifier) => !/^(\.|node:|virtual:)/.test(specifier) && !existsSync(join(root, specifier)))
    .flatMap((specifier) => /^(@[\w-]+\/)?[\w.-]+(?=\/|$)/.exec(specifier)?.[0] ?? []);
  return [...new Set(names)];
}

test('the client loads a framework only with the adapter of that framework', () => {
  const client = new Map(
    sources.filter(({ file }) => file.startsWith('packages/client/')).map((source) => [source.file, source]),
  );
  const adapters = [...client.values()].filter((source) =>
    importsOf(source).some((specifier) => !specifier.startsWith('packages/')),
  );
  const isOfAiSdk = ({ file }: { file: string }) => file.startsWith('packages/client/src/ai-sdk/');
  expect(adapters.filter((source) => !isOfAiSdk(source)).map(({ file }) => file)).toEqual([
    'packages/client/src/workers/ai-sdk.ts',
    'packages/client/src/workers/langgraph.ts',
    'packages/client/src/workers/openai-agents.ts',
  ]);
  const importers = [...client.values()].filter((source) =>
    importsOf(source).some((file) => adapters.some((adapter) => adapter.file === file)),
  );
  expect(importers.filter((source) => !isOfAiSdk(source)).map(({ file }) => file)).toEqual([]);
});

// The layers of the server, from top to bottom: its folders and the files next to them. Each may import only from layers below it.
const layers = [
  'main.ts',
  'maintenance.ts',
  'operator/doctor',
  'operator',
  'http',
  'http/console',
  'http/reference',
  'http/stream',
  'http/idempotency',
  'http/admission',
  'http/auth',
  'http/body',
  'http/connection',
  'overview',
  'end-users',
  'idempotency',
  'schedules',
  'inspect',
  'node',
  'node/claims',
  'sessions/reading',
  'sessions',
  'sessions/retention',
  'sessions/search',
  'organizations',
  'people',
  'workers',
  'webhooks',
  'destinations',
  'destinations/webhook',
  'destinations/destination',
  'listening',
  'deliveries',
  'deliveries/destinations',
  'turn',
  'approvals',
  'keys',
  'budgets',
  'agents',
  'models',
  'models/limits',
  'models/providers',
  'models/response',
  'models/prompt',
  'models/identities',
  'models/keys',
  'models/failure',
  'models/tools',
  'models/model',
  'tools',
  'tools/mcp',
  'tools/http',
  'tools/request',
  'tools/tool',
  'files',
  'people/memberships',
  'environments',
  'session-rows',
  'schemas',
  'config',
  'journal',
  'usage',
  'analytics',
  'events',
  'observe',
  'wake',
  'egress',
  'vault',
  'db/schema',
  'db',
  'lib/json',
  'lib/files',
  'lib',
  'platform.ts',
];

// Layers of the console. A folder in a page's or in ui/ is a part of it.
const consoleLayers = [
  'main.tsx',
  'router.tsx',
  'frame',
  'palette',
  'pages/overview',
  'pages/playground',
  'pages/environments',
  'pages/start',
  'pages/agents',
  'pages/usage',
  'pages/schedules',
  'pages/webhooks',
  'pages/share',
  'pages/keys',
  'pages/sessions',
  'pages/organizations',
  'pages/account',
  'pages/sign-in',
  'pages/approvals',
  'pages/events',
  'pages/budgets',
  'pages/people',
  'pages/system',
  'shortcuts',
  'ui',
  'data',
  'reference',
  'lib',
];

/** They have the types of what every part of a node receives, and are below all of them. */
const namesTypesFromAbove = ['packages/server/src/platform.ts', 'packages/server/src/lib/context.ts'];

/** A folder, or a file that is in none. */
function layerOf(file: string): string {
  const path = file.replace('packages/server/src/', '');
  return path.includes('/') ? dirname(path) : path;
}

test('each folder of the server is a layer and imports only from layers below it', () => {
  const wrong = server.flatMap((source) => {
    const own = layerOf(source.file);
    expect(layers, `${source.file} is in a folder that has a place`).toContain(own);
    const above = importsOf(source)
      .filter((file) => file.startsWith('packages/server/src/'))
      .filter((file) => layers.indexOf(layerOf(file)) < layers.indexOf(own));
    const isAllowed = above.length > 0 && namesTypesFromAbove.includes(source.file);
    return above.filter((file) => !isAllowed || !onlyTypes(source, file)).map((file) => `${source.file} → ${file}`);
  });
  expect(wrong).toEqual([]);
  expect(layers.filter((layer) => !server.some(({ file }) => layerOf(file) === layer))).toEqual([]);
});

test('each folder of the console is a layer and imports only from layers below it', () => {
  const layer = (file: string) => {
    const [first = '', second = ''] = file.replace('packages/console/src/', '').split('/');
    return first === 'pages' ? `pages/${second}` : first;
  };
  const own = sources.filter(({ file }) => file.startsWith('packages/console/src/'));
  const wrong = own.flatMap((source) => {
    const place = consoleLayers.indexOf(layer(source.file));
    expect(place, `${source.file} is in a folder that has a place`).not.toBe(-1);
    return importsOf(source)
      .filter((file) => file.startsWith('packages/console/src/') && !file.endsWith('.css'))
      .filter((file) => consoleLayers.indexOf(layer(file)) < place)
      .map((file) => `${source.file} → ${file}`);
  });
  expect(wrong).toEqual([]);
  expect(consoleLayers.filter((one) => !own.some(({ file }) => layer(file) === one))).toEqual([]);
});

test('the picture that docs/architecture.md opens with has every layer', () => {
  const [, picture = ''] = readFileSync(join(root, 'docs/architecture.md'), 'utf8').split('```');
  const shown = layers.map((layer) => (layer.endsWith('.ts') ? layer : `${layer.split('/').at(-1)}/`));
  expect(shown.filter((name) => !picture.includes(name))).toEqual([]);
});

test('a folder of the server has at most 30 files, so that one can see what is in it', () => {
  const sizes = Map.groupBy(server, ({ file }) => dirname(file));
  expect([...sizes].filter(([, files]) => files.length > 30).map(([folder]) => folder)).toEqual([]);
});

test('the start does not load packages that most nodes never use, which would take a second and 60 MB', () => {
  const reached = new Set<string>();
  const packages = new Set<string>();
  function load(file: string): void {
    if (reached.has(file)) return;
    reached.add(file);
    const source = server.find((one) => one.file === file)!;
    for (const specifier of importsOf(source).filter((one) => !onlyTypes(source, one))) {
      if (specifier.startsWith('packages/')) load(specifier);
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  }
  load('packages/server/src/main.ts');
  expect(reached.size).toBeGreaterThan(150);
  expect(
    [...packages].filter((name) => /better-auth|@ai-sdk\/(?!provider$)|@opentelemetry|@modelcontext/.test(name)),
  ).toEqual([]);
});

test('the turn machine knows neither SQL nor HTTP, and only the folders of the database know its driver', () => {
  const turn = server.find(({ file }) => file.endsWith('/turn/turn.ts'))!;
  expect(importsOf(turn).filter((specifier) => /sql|\bpg\b|\/db\/|http|undici|fastify|egress/.test(specifier))).toEqual(
    [],
  );
  const drivers = server.filter((source) => importsOf(source).includes('pg')).map(({ file }) => dirname(file));
  expect([...new Set(drivers)]).toEqual(['packages/server/src/db', 'packages/server/src/db/schema']);
});
