// The MCP tools against the protocol's own "everything" server, in a separate process, over streamable HTTP.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { McpTool } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { createMcpTools, type McpTools } from '../../src/tools/mcp/mcp-tools.ts';
import type { ToolOutcome, ToolOwner, ToolRun, TurnTool } from '../../src/tools/tool/tool.ts';
import { freePort } from '../support/free-port.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));
const never = new AbortController().signal;

let base: TestPlatform;
let owner: ToolOwner;
let port: number;
let everything: ChildProcess;
let tools: McpTools;

beforeAll(async () => {
  base = await createTestPlatform();
  owner = { organizationId: base.organizationId, environment: 'production', endUser: null };
  // A list is cached for a minute, however long the tests take.
  const clock: Clock = { ...base.platform.clock, now: () => new Date(0) };
  tools = createMcpTools({ ...base.platform, clock });
  port = await freePort();
  everything = await startEverything();
});
afterAll(async () => {
  await tools.close();
  await stopEverything();
  await base.close();
});

async function startEverything(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}/mcp`;
  while (!(await fetch(url).catch(() => null))) {
    const [code] = await Promise.race([ended, base.platform.clock.sleep(20).then(() => [])]);
    if (code !== undefined) throw new Error(`The server ended with ${code}`);
  }
  return child;
}

async function stopEverything(): Promise<void> {
  if (everything.exitCode !== null || everything.signalCode !== null) return;
  everything.kill('SIGKILL');
  await once(everything, 'exit');
}

const server = (more: Partial<McpTool> = {}): McpTool => ({
  type: 'mcp',
  name: 'everything',
  url: `http://127.0.0.1:${port}/mcp`,
  ...more,
});

async function list(more: Partial<McpTool> = {}): Promise<TurnTool[]> {
  const listed = await tools.list(owner, server(more), never);
  return typeof listed === 'string' ? expect.unreachable(listed) : listed;
}

async function call(
  name: string,
  input: unknown,
  { signal = never, ...run }: Partial<ToolRun> & { signal?: AbortSignal } = {},
): Promise<ToolOutcome> {
  const tool = (await list()).find(({ remoteName }) => remoteName === name);
  if (tool === undefined) return expect.unreachable(`no tool ${name}`);
  return await tools.run({ ...owner, tool, input, operationId: 'op_1', sessionId: 'ses_1', ...run }, signal);
}

test('its tools are listed with their descriptions', async () => {
  const listed = await list();
  expect(listed.find(({ name }) => name === 'everything__get-sum')).toEqual({
    name: 'everything__get-sum',
    description: expect.stringContaining('sum'),
    inputSchema: expect.objectContaining({ type: 'object', required: ['a', 'b'] }),
    approval: 'never',
    by: null,
    repeatable: true,
    runsAs: 'here',
    source: server(),
    remoteName: 'get-sum',
  });
  expect(listed.find(({ name }) => name === 'everything__toggle-simulated-logging')).toMatchObject({
    approval: 'always',
    repeatable: false,
  });
  // It can only be called as a task.
  expect(listed.some(({ remoteName }) => remoteName === 'simulate-research-query')).toBe(false);
  // Tools for clients that support sampling, elicitation or roots are not offered to us.
  expect(listed.some(({ remoteName }) => /sampling|elicitation|roots/.test(remoteName ?? ''))).toBe(false);
});

test('the agent selects its tools and their approval policies', async () => {
  const approval = { echo: 'always', 'get-sum': { when: { properties: { a: { minimum: 100 } } } } } as const;
  expect(await list({ allowedTools: ['get-sum', 'echo', 'get-env'], approval })).toMatchObject([
    { remoteName: 'echo', approval: 'always' },
    { remoteName: 'get-env', approval: 'never' },
    { remoteName: 'get-sum', approval: approval['get-sum'] },
  ]);
});

test('a call returns text, structured content, images and resources', async () => {
  expect(await call('echo', { message: 'hello' })).toEqual({ output: 'Echo: hello' });
  expect(await call('get-structured-content', { location: 'New York' })).toEqual({
    output: { temperature: expect.any(Number), conditions: expect.any(String), humidity: expect.any(Number) },
  });
  expect(await call('get-tiny-image', {})).toEqual({
    output: [
      { type: 'text', text: expect.any(String) },
      { type: 'image', mimeType: 'image/png', bytes: expect.any(Number), note: 'the bytes are not shown' },
      { type: 'text', text: expect.any(String) },
    ],
  });
  const { output } = await call('get-resource-reference', { resourceType: 'Text', resourceId: 1 });
  expect(output).toContainEqual(
    expect.objectContaining({ type: 'resource', uri: 'demo://resource/dynamic/text/1', text: expect.any(String) }),
  );
});

test('concurrent calls each get their own result', async () => {
  const sums = await Promise.all([1, 2, 3, 4, 5].map((a) => call('get-sum', { a, b: 1 }, { operationId: `op_${a}` })));
  expect(sums.map(({ output }) => output)).toEqual([1, 2, 3, 4, 5].map((a) => `The sum of ${a} and 1 is ${a + 1}.`));
});

test('invalid input and an unknown tool are errors with the server’s reason', async () => {
  expect(await call('get-sum', { a: 'one' })).toEqual({ error: expect.stringContaining('expected number') });
  const [tool] = await list();
  const unknown = { ...(tool as TurnTool), remoteName: 'no-such-tool' };
  const run = { ...owner, tool: unknown, input: {}, operationId: 'op_1' };
  expect(await tools.run(run, never)).toEqual({ error: expect.stringContaining('no-such-tool not found') });
});

test('a long call with progress messages returns its result', async () => {
  expect(await call('trigger-long-running-operation', { duration: 1, steps: 10 })).toEqual({
    output: expect.stringContaining('Long running operation completed'),
  });
});

test('a long call that is aborted throws the reason, and the next call succeeds', async () => {
  const reason = new Error('interrupted');
  const abort = new AbortController();
  const outcome = call('trigger-long-running-operation', { duration: 600, steps: 600 }, { signal: abort.signal });
  // The next call on the same session has returned, so the long one has been sent.
  await call('echo', { message: 'hello' });
  abort.abort(reason);
  await expect(outcome).rejects.toBe(reason);
  expect(await call('echo', { message: 'again' })).toEqual({ output: 'Echo: again' });
});

test('a running call fails if the server stops, and so do calls until it is back; then calls succeed again', async () => {
  const outcome = call('trigger-long-running-operation', { duration: 600, steps: 600 });
  await call('echo', { message: 'hello' });
  await stopEverything();
  expect(await outcome).toEqual({
    error: 'The connection was closed before the response was complete. The request may have taken effect.',
    outcomeUnknown: true,
  });
  expect(await call('echo', { message: 'hello' })).toEqual({
    error: 'The host could not be connected to (ECONNREFUSED).',
  });
  everything = await startEverything();
  // It does not know the session any more.
  expect(await call('echo', { message: 'back' })).toEqual({ output: 'Echo: back' });
});
