/** The package as published: built, packed, installed without a network into an empty folder, and used there. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildPackage } from '../../../scripts/build-package.ts';
import { generate, generatedFile } from '../scripts/generate.ts';
import { version } from '../src/version.ts';
import { json, serve } from './fake-service.ts';

const temporary = mkdtempSync(join(tmpdir(), 'signalbox-client-'));
const dist = join(temporary, 'dist');
const app = join(temporary, 'app');
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

// A program from the README; `errors` has the mistakes that only the types can refuse.
const program = `
import { Signalbox, SignalboxError, webhooks, type ApiKey, type Envelope } from '@signalbox/client';

const client = new Signalbox({ apiKey: 'sbk_x', baseUrl: BASE_URL, maxRetries: 0 });
const names: string[] = [];
for await (const key of client.keys.list({ limit: 1 })) names.push(key.name);
const page = await client.keys.list();
const first: ApiKey | undefined = page.data[0];
try {
  await client.agents.get('agt_1');
} catch (error) {
  if (error instanceof SignalboxError) names.push(String(error.status), error.code, String(error.requestId));
}
for await (const { chunks } of client.sessions.stream('ses_1')) {
  for (const chunk of chunks) if (chunk.type === 'session.status') names.push(chunk.status);
}
const seen: Envelope[] = [];
const receiver = webhooks.receiver({ secrets: 'whsec_x', onChunks: (envelope) => void seen.push(envelope) });
const refused: Response = await receiver.fetch(new Request('http://x', { method: 'POST', body: '{}' }));
console.log(JSON.stringify([...names, first?.keyId, refused.status]));
`;
const wrong = `
import { Signalbox } from '@signalbox/client';
const client = new Signalbox({ apiKey: 'sbk_x' });
// @ts-expect-error: no such permission
client.keys.create({ name: 'a', permission: 'owner' });
// @ts-expect-error: the Session's id is missing
client.sessions.stream();
// @ts-expect-error: no such filter
client.sessions.list({ color: 'red' });
// @ts-expect-error: the key can't be read back
client.apiKey;
`;

const adapters = `
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { Agent } from '@openai/agents';
import { Signalbox, type RunOptions } from '@signalbox/client';
import { toUIMessages, toUIMessageStream } from '@signalbox/client/ai-sdk';
import * as aiSdk from '@signalbox/client/workers/ai-sdk';
import * as langgraph from '@signalbox/client/workers/langgraph';
import * as openaiAgents from '@signalbox/client/workers/openai-agents';
import { ToolLoopAgent, type LanguageModel, type UIMessage, type UIMessageChunk } from 'ai';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';

declare const model: LanguageModel;
declare const llm: BaseChatModel;
const all: RunOptions['onTurn'][] = [
  aiSdk.runAgent((settings) => new ToolLoopAgent({ model, ...settings })),
  langgraph.runAgent(({ tools }) => createReactAgent({ llm, tools })),
  openaiAgents.runAgent((settings) => new Agent({ name: 'x', model: 'gpt-5', ...settings })),
];
// @ts-expect-error: not an agent
aiSdk.runAgent(() => 'agent');
// @ts-expect-error: not a graph
langgraph.runAgent(() => 'graph');
// @ts-expect-error: not an agent
openaiAgents.runAgent(() => 'agent');
const messages: UIMessage[] = toUIMessages([], { sessionId: 'ses_1' });
const stream = (client: Signalbox): ReadableStream<UIMessageChunk> => toUIMessageStream(client.sessions.stream('ses_1'));
console.log(...[...all, toUIMessages, toUIMessageStream].map((entry) => typeof entry));
`;

function run(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(error).toBeUndefined();
  expect(status, `${command} ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** The file of the npm that runs the tests: PATH may have another one. */
const npm = (args: string[], cwd: string) =>
  process.env.npm_execpath ? run(process.execPath, [process.env.npm_execpath, ...args], cwd) : run('npm', args, cwd);

beforeAll(() => {
  buildPackage(fileURLToPath(new URL('..', import.meta.url)), dist);
  const packed = JSON.parse(npm(['pack', '--json', '--pack-destination', temporary], dist)) as unknown;
  const [{ filename }] = Object.values(packed as object) as [{ filename: string }];
  writeFileSync(join(temporary, 'package.json'), '{}');
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }');
  npm(['install', '--offline', '--no-audit', '--no-fund', join(temporary, filename)], app);
});

test('the packed client brings the skill for coding agents', () => {
  const skill = readFileSync(join(app, 'node_modules/@signalbox/client/SKILL.md'), 'utf8');
  expect(skill).toMatch(/^---\nname: signalbox\ndescription: .+\n---\n/);
});

test('the packed client runs against a service, with nothing else installed', async () => {
  expect(globSync('node_modules/*', { cwd: app })).toEqual(['node_modules/@signalbox']);
  const { url } = await serve((response, request) => {
    if (request.url.includes('/agents/')) {
      json(response, 404, { code: 'not_found', status: 404, detail: 'No.', requestId: 'req_7' });
    } else if (request.url.includes('/stream')) {
      const chunk = { type: 'session.status', status: 'completed', waitingFor: null, turn: 1, seq: 1 };
      const envelope = { event: 'session.chunks', sessionId: 'ses_1', cursor: 'turn_1:seq_1', chunks: [chunk] };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`event: session.chunks\ndata: ${JSON.stringify(envelope)}\n\n`);
    } else {
      const last = request.url.includes('cursor=2');
      const key = last ? { keyId: 'key_2', name: 'b' } : { keyId: 'key_1', name: 'a' };
      json(response, 200, { data: [key], page: { hasMore: !last, nextCursor: '2' } });
    }
  });
  writeFileSync(join(app, 'main.ts'), program.replace('BASE_URL', `'${url}'`));
  const child = spawn(process.execPath, ['main.ts'], { cwd: app, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (piece) => {
    printed += piece;
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(JSON.parse(printed)).toEqual(['a', 'b', '404', 'not_found', 'req_7', 'completed', 'key_1', 401]);
});

test('its declarations compile in strict mode without Node’s types, and refuse mistakes', () => {
  writeFileSync(join(app, 'main.ts'), program.replace('BASE_URL', "'http://x'"));
  writeFileSync(join(app, 'wrong.ts'), wrong);
  const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
  const compilerOptions = {
    ...strict,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2023', 'dom'],
    types: [],
    noEmit: true,
  };
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts', 'wrong.ts'] }));
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
  run(process.execPath, [join(typescript, 'bin/tsc'), '-p', app], app);
});

test('its adapters for frameworks compile and load, with each framework installed', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  for (const name of ['ai', 'zod', '@langchain/core', '@langchain/langgraph', '@openai/agents']) {
    mkdirSync(dirname(join(app, 'node_modules', name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name));
  }
  writeFileSync(join(app, 'adapters.ts'), adapters);
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2023', 'dom', 'dom.asynciterable'],
    types: [],
    skipLibCheck: true,
    noEmit: true,
  };
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['adapters.ts'] }));
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
  run(process.execPath, [join(typescript, 'bin/tsc'), '-p', app], app);
  expect(run(process.execPath, ['adapters.ts'], app)).toBe('function function function function function\n');
});

test('it includes neither the contract nor a dependency, and exports its version', () => {
  const manifest = JSON.parse(readFileSync(join(dist, 'package.json'), 'utf8')) as Record<string, unknown>;
  expect(manifest).toMatchObject({ name: '@signalbox/client', version, type: 'module', license: 'Apache-2.0' });
  // The frameworks of its adapters, each optional.
  const { peerDependencies, peerDependenciesMeta } = manifest as Record<string, Record<string, unknown>>;
  expect(Object.keys(manifest).filter((field) => /dependencies$|scripts/i.test(field))).toEqual(['peerDependencies']);
  expect(Object.keys(peerDependenciesMeta!)).toEqual(Object.keys(peerDependencies!));
  expect(Object.values(peerDependenciesMeta!)).toEqual([{ optional: true }, { optional: true }, { optional: true }]);
  for (const file of globSync(join(dist, '**/*.{js,d.ts}'))) {
    expect(readFileSync(file, 'utf8'), file).not.toMatch(
      /@signalbox\/contract|typebox|from 'node:|Promise\.withResolvers\(|\.ts'/,
    );
  }
});

test('its generated types match the contract: npm run generate', () => {
  expect(readFileSync(generatedFile, 'utf8')).toBe(generate());
});
