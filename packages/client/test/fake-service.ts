/** A real HTTP server on loopback with a test's responses, and a clock that the test moves. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { type ClientOptions, Signalbox, type Sleep } from '../src/index.ts';

export const apiKey = 'sbk_test_0000000000000000000000000000000000_secret';

export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Responds to one request; `number` counts them from 0. */
export type Answer = (
  response: ServerResponse,
  request: Seen,
  number: number,
  raw: IncomingMessage,
) => void | Promise<void>;

/** Listens until the test ends. */
export async function serve(answer: Answer): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = '', url = '', headers } = request;
    const one = { method, url, headers, body: Buffer.concat(parts).toString() };
    seen.push(one);
    await answer(response, one, seen.length - 1, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

export function problem(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
  more: object = {},
) {
  const body = {
    type: `/docs#${code}`,
    title: code,
    status,
    code,
    detail: `It is ${code}.`,
    requestId: 'req_1',
    ...more,
  };
  json(response, status, body, { 'content-type': 'application/problem+json', 'x-request-id': 'req_1', ...headers });
}

/** No attempt times out unless a test wants it: a timeout is distinguished from the pauses by its length. */
export const timeoutMs = 987_654;

/** Pauses between attempts pass immediately and are recorded; timeouts and the silence check never fire. */
export function quickTime(): { sleep: Sleep; pauses: number[] } {
  const pauses: number[] = [];
  const sleep: Sleep = async (ms, signal) => {
    if (ms === timeoutMs || ms === 10_000) {
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }
    signal?.throwIfAborted();
    pauses.push(ms);
  };
  return { sleep, pauses };
}

/** A service, a client of it, its requests, and the pauses of the client. */
export async function clientOf(
  answer: Answer,
  options: Partial<Extract<ClientOptions, { session?: undefined; token?: undefined }>> = {},
) {
  const { url, seen } = await serve(answer);
  const { sleep, pauses } = quickTime();
  const client = new Signalbox({ apiKey, baseUrl: url, timeoutMs, sleep, ...options });
  return { client, seen, pauses, url };
}
