/** The package as published: its types in strict mode and its size in a page. packages/cli/test/published.test.ts has the linters. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildPackage } from '../../../scripts/build-package.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const app = mkdtempSync(join(tmpdir(), 'signalbox-react-'));
const installed = (name: string) => join(app, 'node_modules', name);
const dist = installed('@signalbox/react');
afterAll(() => rmSync(app, { recursive: true, force: true }));

beforeAll(() => {
  buildPackage(join(root, 'packages/client'), installed('@signalbox/client'));
  buildPackage(join(root, 'packages/react'), dist);
  for (const name of ['react', '@types/react', 'csstype', 'ai', '@ai-sdk/react', '@ag-ui/client', 'rxjs']) {
    mkdirSync(dirname(installed(name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), installed(name));
  }
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }');
});

function run(file: string, args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { cwd: app, encoding: 'utf8' });
  expect(status, `${stdout}${stderr}`).toBe(0);
  return stdout;
}

test('it has no dependencies but peers', () => {
  const manifest = JSON.parse(readFileSync(join(dist, 'package.json'), 'utf8')) as Record<string, object>;
  expect(Object.keys(manifest).filter((field) => /dependencies$|scripts/i.test(field))).toEqual(['peerDependencies']);
  const { peerDependencies, peerDependenciesMeta } = manifest;
  const optional = Object.keys(peerDependenciesMeta!);
  const required = Object.keys(peerDependencies!).filter((name) => !optional.includes(name));
  expect(required).toEqual(['@signalbox/client', 'react']);
});

const program = `
import { Signalbox } from '@signalbox/client';
import { createSessionStore, useSession, type SessionMessage, type ToolPart } from '@signalbox/react';

const token = async () => 'sbt_x';
const client = new Signalbox({ token, baseUrl: 'http://x' });

export function Page({ sessionId }: { sessionId: string | null }) {
  const { messages, send, decide, error } = useSession({
    baseUrl: 'http://x',
    token,
    agentId: 'agt_1',
    environment: 'production',
    sessionId,
  });
  const tools: ToolPart[] = messages.flatMap((message) =>
    message.role === 'assistant' ? message.parts.filter((part) => part.type === 'tool') : [],
  );
  void send('Hello', { onBusy: 'steer' }).then((isSent: boolean) => isSent);
  void decide('op_1', 'approved', { scope: 'session' });
  const code: string | undefined = error?.code;
  return [tools.length, code] as const;
}
export const store = createSessionStore({ client, sessionId: 'ses_1' });
export const first: SessionMessage | undefined = store.getSnapshot().messages[0];
export const known = () => useSession({ client, sessionId: 'ses_1' });
// @ts-expect-error: neither a session nor an agent
export const neither = () => useSession({ client });
// @ts-expect-error: no environment
export const without = () => useSession({ client, agentId: 'agt_1' });
// @ts-expect-error: no way to reach the service
export const unreachable = () => useSession({ sessionId: 'ses_1' });
// @ts-expect-error: a user message has no tools
export const wrong = (message: SessionMessage) => message.role === 'user' && message.parts.find((part) => part.type === 'tool');
// @ts-expect-error: immutable
store.getSnapshot().messages.push(first!);
`;

test.each(['nodenext', 'bundler'])(
  'its declarations compile in strict mode with the resolution %s, and refuse mistakes',
  (resolution) => {
    writeFileSync(join(app, 'main.ts'), program);
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      target: 'es2022',
      module: resolution === 'nodenext' ? 'nodenext' : 'esnext',
      moduleResolution: resolution,
      lib: ['es2023', 'dom', 'dom.iterable'],
      types: [],
      noEmit: true,
    };
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
    run(join(root, 'node_modules/typescript/bin/tsc'), ['-p', app]);
  },
);

/** What a page gets for these lines, minified, with the peers as imports; of the client only what the entry of the hooks brings along. */
async function bundle(lines: string): Promise<string> {
  const entry = join(app, 'entry.js');
  writeFileSync(entry, lines);
  const result = (await build({
    root: app,
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: true,
      rolldownOptions: {
        input: entry,
        preserveEntrySignatures: 'strict',
        external: [/^(react|ai|rxjs|@ag-ui\/client|@ai-sdk\/react)($|\/)/, /^@signalbox\/client(\/ai-sdk)?$/],
      },
    },
  })) as Rolldown.RolldownOutput;
  return result.output.map((file) => (file.type === 'chunk' ? file.code : '')).join('\n');
}

test.each(['', '/ai-sdk', '/ag-ui'])(
  '@signalbox/react%s adds less to a page than the README says, and at most 12 KB',
  async (path) => {
    const bytes = gzipSync(await bundle(`export * from '@signalbox/react${path}';`)).length;
    const readme = readFileSync(join(root, 'packages/react/README.md'), 'utf8');
    const row = readme.split('\n').find((line) => line.startsWith(`| \`@signalbox/react${path}\` |`));
    const promised = Number(/\| (\d+) KB \|$/.exec(row!)![1]);
    expect(promised).toBeLessThanOrEqual(12);
    expect(bytes).toBeLessThan(promised * 1024);
  },
);

test('a page gets only what it imports', async () => {
  expect((await bundle(`import '@signalbox/react';`)).trim()).toBe('');
  const store = await bundle(`export { createSessionStore } from '@signalbox/react';`);
  expect(store).toContain('createSessionStore');
  expect(store).not.toMatch(/from ?"react"/);
});
