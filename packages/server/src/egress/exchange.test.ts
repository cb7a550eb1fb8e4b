// Responses whose body is read as it arrives.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { createEgress, type OrganizationEgress } from './egress.ts';
import { EgressError } from './errors.ts';
import type { OpenRequest } from './exchange.ts';
import { parseEgressAllow } from './policy.ts';

const MIB = 1024 * 1024;
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serve(listener: RequestListener) {
  const server = createServer(listener);
  const seen = { connections: 0, closed: Promise.withResolvers<void>() };
  server.on('connection', (socket) => {
    seen.connections += 1;
    socket.once('close', () => seen.closed.resolve());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const egress = createEgress({ policy: parseEgressAllow('127.0.0.1') });
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
    return egress.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = (more: Partial<OpenRequest> = {}): ReturnType<OrganizationEgress['open']> =>
    egress.of('a').open({ url: `http://127.0.0.1:${port}/`, method: 'GET', timeoutMs: 5000, ...more });
  return { seen, open };
}

const read = async (body: AsyncIterable<Buffer>) => {
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.length;
  return bytes;
};
const kindOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => expect.unreachable('it was to fail'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EgressError);
  return (error as EgressError).kind;
};

test('little of a body is in memory until its reader takes it, and a connection whose response was read is used again', async () => {
  let asked = 0;
  const { seen, open } = await serve((_request, response) => response.end(Buffer.alloc(asked++ === 0 ? 32 * MIB : 1)));
  const { status, body } = await open();
  // Others are served meanwhile.
  for (let count = 0; count < 50; count += 1) expect(await read((await open()).body)).toBe(1);
  expect([status, body.readableLength]).toEqual([200, 0]);
  let most = 0;
  for await (const _ of body) most = Math.max(most, body.readableLength);
  expect(most).toBeLessThan(MIB);
  expect(await read((await open()).body)).toBe(1);
  expect(seen.connections).toBe(2);
});

test('a response without a body ends', async () => {
  const { open } = await serve((_request, response) => response.writeHead(204).end());
  const { status, body } = await open();
  expect([status, await read(body)]).toEqual([204, 0]);
});

test('a body that is left closes its connection', async () => {
  const { seen, open } = await serve((_request, response) => response.end(Buffer.alloc(32 * MIB)));
  const { body } = await open();
  for await (const _ of body) break;
  await seen.closed.promise;
  expect(await read((await open()).body)).toBe(32 * MIB);
  expect(seen.connections).toBe(2);
});

test('only the time in which the server is waited for counts', async () => {
  const began = Promise.withResolvers<void>();
  const { open } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': MIB }).write(Buffer.alloc(10), () => began.resolve());
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const { body } = await open();
  await began.promise;
  vi.advanceTimersByTime(60_000);
  const chunks = body[Symbol.asyncIterator]();
  expect((await chunks.next()).value).toHaveLength(10);
  const next = kindOf(chunks.next());
  vi.advanceTimersByTime(4_999);
  expect(body.destroyed).toBe(false);
  vi.advanceTimersByTime(2);
  expect(await next).toBe('timeout');
});

test('a server that leaves in the middle, and a signal that is aborted, fail the reader, and nothing else if there is no reader', async () => {
  const { open } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': MIB }).write(Buffer.alloc(10), () => response.destroy());
  });
  expect(await kindOf(read((await open()).body))).toBe('reset');
  const abort = new AbortController();
  const { body } = await open({ signal: abort.signal });
  abort.abort(new Error('over'));
  expect(body.destroyed).toBe(true);
  expect(await kindOf(read(body))).toBe('aborted');
});
