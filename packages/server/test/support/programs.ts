// The programs that tests start as processes, bundled: the files of a node, and of its dependencies, take a second of processor time to
// find and read one by one, and a run starts a node or a command two hundred times. What a bundle does is what its sources do: code
// that looks for files next to its own still finds the files of the sources.
import { createHash } from 'node:crypto';
import { existsSync, globSync, statSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
// It takes a few seconds of processor time.
const LONGEST_BUILD_MS = 120_000;
const KEPT_MS = 24 * 3600 * 1000;
const POLL_MS = 50;
const CACHE = join(root, 'node_modules/.cache/signalbox-programs');

const programs = {
  /** The `signalbox` command. */
  command: 'packages/cli/src/main.ts',
  /** A node without a command, for tests with several nodes. */
  node: 'packages/server/test/support/node-process.ts',
  /** The demo of the examples, with its own service. */
  demo: 'examples/demo/main.ts',
  /** The service of the soak. */
  watched: 'proofs/support/watched-process.ts',
};
/** Everything that is in one of them, and the versions of the dependencies. */
const SOURCES = [
  ...['packages/*/src/**/*.ts', 'examples/demo/**/*.ts', ...Object.values(programs)],
  ...['packages/server/test/support/programs.ts', 'package-lock.json'],
];

const here = globalThis as { signalboxPrograms?: Promise<string> };

/** The file of a program, for `node`. Bundles all of them if their sources have changed since they last were. */
export async function programFile(name: keyof typeof programs): Promise<string> {
  here.signalboxPrograms ??= bundle();
  return join(await here.signalboxPrograms, `${name}.mjs`);
}

async function bundle(): Promise<string> {
  const hash = createHash('sha256');
  for (const path of globSync(SOURCES, { cwd: root }).toSorted()) {
    const { mtimeMs, size } = statSync(join(root, path));
    hash.update(JSON.stringify([path, mtimeMs, size]));
  }
  const key = hash.digest('hex').slice(0, 16);
  const directory = join(CACHE, key);
  const draft = join(CACHE, `draft-${key}`);
  await mkdir(CACHE, { recursive: true });
  while (!existsSync(directory)) {
    if (await begin(draft)) await buildInto(draft, directory);
    // Another worker builds it.
    else await sleep(POLL_MS);
  }
  return directory;
}

/** Whether this process builds: no other one has begun, unless it was killed. */
async function begin(draft: string): Promise<boolean> {
  const since = (await stat(draft).catch(() => undefined))?.mtimeMs;
  if (since !== undefined && Date.now() - since < LONGEST_BUILD_MS) return false;
  await rm(draft, { recursive: true, force: true });
  return await mkdir(draft).then(
    () => true,
    () => false,
  );
}

async function buildInto(draft: string, directory: string): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const { mtimeMs } = await stat(join(CACHE, name));
    // Another run may use one that is newer.
    if (Date.now() - mtimeMs > KEPT_MS) await rm(join(CACHE, name), { recursive: true, force: true });
  }
  await build({
    entryPoints: Object.keys(programs).map((name) => ({ in: `program:${name}`, out: name })),
    outdir: draft,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    conditions: ['development'],
    // CommonJS packages require modules of Node.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    logLevel: 'warning',
    plugins: [plugin],
  }).catch(async (error) => {
    await rm(draft, { recursive: true });
    throw error;
  });
  await rename(draft, directory);
}

const plugin: Plugin = {
  name: 'programs',
  setup(building) {
    building.onResolve({ filter: /^program:/ }, ({ path }) => ({ path, namespace: 'program' }));
    building.onLoad({ filter: /^/, namespace: 'program' }, ({ path }) => ({
      // What one process compiled, the next one reads.
      contents: `
        import { enableCompileCache } from 'node:module';
        enableCompileCache(new URL('compiled/', import.meta.url).pathname);
        await import('./${programs[path.slice('program:'.length) as keyof typeof programs]}');`,
      resolveDir: root,
    }));
    building.onLoad({ filter: /\/(packages|proofs|examples)\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'ts' };
    });
  },
};
