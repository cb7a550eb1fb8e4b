// What tools return is read only when there is room for it in the memory of the node (src/lib/memory.ts).
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createFairShare, type FairShare } from '../../src/lib/fair-share.ts';
import type { SaveFile } from '../../src/tools/tool/returned-file.ts';
import type { ToolOutcome } from '../../src/tools/tool/tool.ts';
import { createTools, type Tools } from '../../src/tools/tools.ts';
import { startMcpServer } from '../support/mcp-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { httpTool } from '../support/session-world.ts';

const MIB = 1024 * 1024;
const SHORT = 64 * 1024;
const MEMORY = 100 * MIB;
const environment = 'production';

let base: TestPlatform;
let server: Server;
let body: { type: string; bytes: number; chunked?: boolean };
let memory: FairShare;
let tools: Tools;
let abort: AbortController;
/** What the tests' files were saved with. */
let saved: number[];

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());
beforeEach(async () => {
  server = createServer((_, response) => {
    const { type, bytes, chunked } = body;
    response.writeHead(200, { 'content-type': type, ...(!chunked && { 'content-length': bytes }) });
    response.end(Buffer.alloc(bytes, type.startsWith('image/') ? 0xff : 0x20));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  memory = createFairShare({ max: MEMORY });
  tools = createTools({ ...base.platform, memory });
  abort = new AbortController();
  saved = [];
});
afterEach(async () => {
  await tools.close();
  server.closeAllConnections();
  server.close();
});

const saveFile: SaveFile = async ({ content }) => {
  saved.push((await buffer(content)).length);
  return 'saved';
};

async function callHttp(): Promise<ToolOutcome> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const owner = { organizationId: base.organizationId, environment, endUser: null };
  const { tools: listed } = await tools.list(
    owner,
    [httpTool('look', { request: { method: 'GET', url } })],
    abort.signal,
  );
  return await tools.run({ ...owner, tool: listed[0]!, input: {}, operationId: 'op_1', saveFile }, abort.signal);
}

const isFree = () => {
  const release = memory.tryTake('another', MEMORY);
  release?.();
  return release !== undefined;
};

test.each<[string, typeof body]>([
  ['a file', { type: 'image/png', bytes: 8 * MIB }],
  ['a file of unknown length', { type: 'image/png', bytes: 8 * MIB, chunked: true }],
  ['a long text', { type: 'text/plain', bytes: SHORT + 1 }],
  ['a long text of unknown length', { type: 'application/octet-stream', bytes: SHORT + 1, chunked: true }],
])(
  '%s is not read while there is no room, and then the call succeeds and returns its memory',
  async (_title, given) => {
    body = given;
    const release = memory.tryTake('another', MEMORY)!;
    const outcome = callHttp();
    await expect.poll(() => memory.waiting).toBe(1);
    expect(saved).toEqual([]);
    release();
    expect((await outcome).error).toBeUndefined();
    expect(saved).toEqual(given.type === 'image/png' ? [given.bytes] : []);
    expect(isFree()).toBe(true);
  },
);

test('a short text needs no room, and a short file only for its own bytes', async () => {
  const release = memory.tryTake('another', MEMORY - 200)!;
  body = { type: 'text/plain', bytes: SHORT };
  expect(await callHttp()).toEqual({ output: ' '.repeat(SHORT) });
  body = { type: 'image/png', bytes: 100 };
  await callHttp();
  expect(saved).toEqual([100]);
  release();
});

test('a call that is aborted while it waits for room leaves the line, and a file that is too large returns its memory', async () => {
  const release = memory.tryTake('another', MEMORY)!;
  body = { type: 'image/png', bytes: 8 * MIB };
  const outcome = callHttp();
  await expect.poll(() => memory.waiting).toBe(1);
  const reason = new Error('interrupted');
  abort.abort(reason);
  await expect(outcome).rejects.toBe(reason);
  expect(memory.waiting).toBe(0);
  release();
  abort = new AbortController();
  body = { type: 'image/png', bytes: 8 * MIB + 1 };
  expect(await callHttp()).toEqual({ error: 'HTTP 200: the file is larger than 8 MiB.' });
  expect(isFree()).toBe(true);
});

test('the long result of an MCP server waits for room as well, until its files are stored', async () => {
  const mcp = await startMcpServer({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] });
  const data = Buffer.alloc(SHORT, 0xff).toString('base64');
  mcp.on('tools/call', (exchange) => exchange.result({ content: [{ type: 'image', mimeType: 'image/png', data }] }));
  const owner = { organizationId: base.organizationId, environment, endUser: null };
  const server = { type: 'mcp' as const, name: 'shop', url: mcp.url, approval: 'never' as const };
  const { tools: listed } = await tools.list(owner, [server], abort.signal);
  const wasFree: boolean[] = [];
  const save: SaveFile = async ({ content }) => {
    saved.push((await buffer(content)).length);
    wasFree.push(isFree());
    return 'saved';
  };
  const release = memory.tryTake('another', MEMORY)!;
  const call = { ...owner, tool: listed[0]!, input: {}, operationId: 'op_1', saveFile: save };
  const outcome = tools.run(call, abort.signal);
  await expect.poll(() => memory.waiting).toBe(1);
  release();
  expect((await outcome).error).toBeUndefined();
  expect([saved, wasFree, isFree()]).toEqual([[SHORT], [false], true]);
  await mcp.close();
});
