// Files that tools return: they are stored for the session, shown, and reach the model as files.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk, FilePart } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { setSecret } from '../../src/environments/secrets.ts';
import { listEvents } from '../../src/events/events.ts';
import { deleteFile, listFiles } from '../../src/files/files.ts';
import { keepFile, receiveFile } from '../../src/files/receive.ts';
import { formatId } from '../../src/lib/ids.ts';
import type { ModelCall } from '../../src/models/model/model.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import { createTools, type Tools } from '../../src/tools/tools.ts';
import { pdf, png, sha256 } from '../support/files.ts';
import { startMcpServer } from '../support/mcp-server.ts';
import { answering, clientTool, createWorld, httpTool, type World } from '../support/session-world.ts';

let world: World;
let tools: Tools;
let server: Server;
let url: string;
let body: { type: string; bytes: Buffer; headers?: Record<string, string> };

beforeEach(async () => {
  world = await createWorld();
  tools = createTools(world.platform);
  server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': body.type, ...body.headers }).end(body.bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(async () => {
  await world.close();
  await tools.close();
  server.close();
});

const isIdle = (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === 'idle';

/** Runs one call of the tool in a session; what the model gets then is in `seen`. */
async function runCall(name: string, tool: Parameters<World['agent']>[0], platform = world.platform) {
  const seen: ModelCall[] = [];
  const ask = answering([{ calls: [[name, {}]] }, { text: 'ok' }], (call) => seen.push(call));
  await world.work({ platform, ask, list: tools.list, run: tools.run });
  const sessionId = await world.open(await world.agent(tool));
  const chunks = await world.until(sessionId, isIdle);
  const result = chunks.find(({ type }) => type === 'tool.result') as Extract<Chunk, { type: 'tool.result' }>;
  const created = chunks.filter((chunk) => chunk.type === 'file.created');
  return { sessionId, chunks, result, created, given: seen[1]!.transcript.at(-1)!.content };
}

test('the records of a file that a tool returned name its agent, as those of its session do', async () => {
  body = { type: 'image/png', bytes: png };
  const tool = httpTool('photo', { request: { method: 'GET', url } });
  const { sessionId, created } = await runCall('photo', [tool]);
  const { agentId } = (await getSession(world.ctx, { sessionId })).session;
  const { fileId } = (created[0] as Extract<Chunk, { type: 'file.created' }>).file;
  await deleteFile(world.ctx, { fileId });
  const { data } = await listEvents(world.ctx, { agentId, type: 'file.*', order: 'asc' });
  expect(data.map(({ type, resource }) => [type, resource.id])).toEqual([
    ['file.created', fileId],
    ['file.deleted', fileId],
  ]);
});

const filesOfWorld = async () => (await listFiles(world.ctx, {})).data;

test('a file in an http response is stored for the session, shown before the result, and in what the model gets', async () => {
  // The name for older clients, and the one that counts.
  const headers = { 'content-disposition': `attachment; filename="_.png"; filename*=UTF-8''%C3%9Cbersicht%3B%201.png` };
  body = { type: 'image/jpeg', bytes: png, headers };
  const { sessionId, chunks, result, created, given } = await runCall('photo', [
    httpTool('photo', { request: { method: 'GET', url } }),
  ]);
  const [stored] = await filesOfWorld();
  // The type is that of the bytes, not what the server said.
  expect(stored).toMatchObject({ mediaType: 'image/png', bytes: png.length, sha256: sha256(png), sessionId });
  const part: FilePart = {
    type: 'file',
    fileId: stored!.fileId,
    mediaType: 'image/png',
    bytes: png.length,
    filename: 'Übersicht; 1.png',
  };
  expect(result.output).toEqual(part);
  expect(created).toMatchObject([{ toolCallId: result.toolCallId, file: part }]);
  expect(chunks.indexOf(created[0]!)).toBe(chunks.indexOf(result) - 1);
  expect(given).toMatchObject([{ type: 'tool_result', output: part }]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.find(({ role }) => role === 'tool')?.content).toMatchObject([{ output: part }]);
});

test('images and resources of an MCP server are files', async () => {
  const inputSchema = { type: 'object' };
  const mcp = await startMcpServer({ tools: [{ name: 'look', inputSchema }] });
  const resource = { uri: 'demo://order.pdf', mimeType: 'application/pdf', blob: pdf.toString('base64') };
  mcp.on('tools/call', (exchange) =>
    exchange.result({
      content: [
        { type: 'text', text: 'Both:' },
        { type: 'image', mimeType: 'image/png', data: png.toString('base64') },
        { type: 'resource', resource },
      ],
    }),
  );
  const { result, created } = await runCall('shop__look', [
    { type: 'mcp', name: 'shop', url: mcp.url, approval: 'never' },
  ]);
  expect(result.output).toMatchObject([
    { type: 'text', text: 'Both:' },
    { type: 'file', mediaType: 'image/png', bytes: png.length },
    { type: 'file', mediaType: 'application/pdf', bytes: pdf.length, filename: 'order.pdf' },
  ]);
  expect(created).toHaveLength(2);
  expect(await filesOfWorld()).toHaveLength(2);
  await mcp.close();
});

test('a file with a secret of the tool is not stored', async () => {
  const host = new URL(url).host;
  await setSecret(world.ctx, { env: 'production', name: 'TOKEN', value: 'sk-returned-4711', allowedHosts: [host] });
  body = { type: 'image/png', bytes: Buffer.concat([png, Buffer.from('sk-returned-4711')]) };
  const request = { method: 'GET' as const, url, headers: { Authorization: '{{secrets.TOKEN}}' } };
  const { result, created } = await runCall('photo', [httpTool('photo', { request })]);
  expect(result.output).toMatchObject({ note: 'it contains a secret, so it was not stored' });
  expect(created).toEqual([]);
  expect(await filesOfWorld()).toEqual([]);
});

test('if there is no room for a file, the result says why, and the call has succeeded', async () => {
  body = { type: 'image/png', bytes: png };
  const full = { ...world.platform, files: { ...world.platform.files, maxBytes: 0 } };
  const { result } = await runCall('photo', [httpTool('photo', { request: { method: 'GET', url } })], full);
  expect(result.output).toMatchObject({
    note: expect.stringContaining('it was not stored: The files of the organization'),
  });
});

test('the result of a client tool can name uploaded files, which are in what the model gets', async () => {
  const seen: ModelCall[] = [];
  await world.work({ ask: answering([{ calls: [['photo', {}]] }, { text: 'ok' }], (call) => seen.push(call)) });
  const sessionId = await world.open(await world.agent([clientTool('photo', { approval: 'never' })]));
  const chunks = await world.until(sessionId, ({ type }) => type === 'tool.call');
  const { toolCallId } = chunks.find(({ type }) => type === 'tool.call') as Extract<Chunk, { type: 'tool.call' }>;
  const { organizationId } = world;
  const upload = {
    organizationId,
    environment: 'production',
    filename: 'a.png',
    claimedType: undefined,
    sessionId: null,
    uploader: null,
  };
  const received = await receiveFile(
    world.platform,
    upload,
    (async function* () {
      yield png;
    })(),
  );
  await world.platform.db.transaction((tx) => keepFile(tx, world.platform, world.ctx, received));
  const fileId = formatId('file', received.fileId);

  const unknown = {
    type: 'file',
    fileId: formatId(
      'file',
      received.fileId.replace(/.$/, (at) => (at === '0' ? '1' : '0')),
    ),
  };
  await expect(sendToolResult(world.ctx, { sessionId, toolCallId, output: unknown })).rejects.toMatchObject({
    code: 'file_invalid',
  });
  const output = ['See:', { type: 'file', fileId }, { type: 'file', fileId, note: 'not a file' }];
  await sendToolResult(world.ctx, { sessionId, toolCallId, output });
  // Once more, as after a lost response.
  await sendToolResult(world.ctx, { sessionId, toolCallId, output });
  await world.until(sessionId, isIdle);
  const part = { type: 'file', fileId, mediaType: 'image/png', bytes: png.length, filename: 'a.png' };
  expect(seen[1]!.transcript.at(-1)!.content).toMatchObject([{ output: ['See:', part, output[2]] }]);
});
