import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import type { HttpRequest, HttpTool } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Egress, OrganizationEgress } from '../../src/egress/egress.ts';
import { setSecret } from '../../src/environments/secrets.ts';
import { createHttpTool } from '../../src/tools/http/http-tool.ts';
import type { SaveFile } from '../../src/tools/tool/returned-file.ts';
import type { ToolRun } from '../../src/tools/tool/tool.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const MIB = 1024 * 1024;
const SECRET = 'sk/4711 "x"';

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

let base: TestPlatform;
let server: Server;
let host: string;
let received: Received[];
let reply: RequestListener;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());

beforeEach(async () => {
  received = [];
  reply = (_request, response) => response.end('ok');
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    reply(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await setToken([host]);
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const setToken = (allowedHosts: string[], name = 'TOKEN', value = SECRET) =>
  setSecret(base.ctx, { env: 'production', name, value, allowedHosts });

function toolRun(
  request: Partial<HttpRequest> = {},
  more: Partial<ToolRun> = {},
  tool: Partial<HttpTool> = {},
): ToolRun {
  return {
    organizationId: base.organizationId,
    environment: 'production',
    endUser: null,
    tool: {
      name: 'look',
      description: '',
      inputSchema: {},
      approval: 'never',
      by: null,
      repeatable: true,
      runsAs: 'here',
      source: {
        type: 'http',
        name: 'look',
        description: '',
        inputSchema: {},
        request: { method: 'GET', url: `http://${host}/`, ...request },
        ...tool,
      },
    },
    input: {},
    operationId: 'op_1',
    ...more,
  };
}

const never = new AbortController().signal;
const outcomeOf = (run: ToolRun, signal = never) => createHttpTool(base.platform)(run, signal);

/** The outcome of a call with this response. */
function outcomeAfter(
  body: string | Buffer,
  headers: Record<string, string> = {},
  status = 200,
  request: Partial<HttpRequest> = {},
) {
  reply = (_request, response) => response.writeHead(status, headers).end(body);
  return outcomeOf(toolRun(request));
}

const json = { 'content-type': 'application/json; charset=utf-8' };

describe('the request', () => {
  test('is the filled-in template, with the operation as idempotency key', async () => {
    await outcomeOf(
      toolRun(
        {
          method: 'POST',
          url: `http://${host}/orders/{{input.order}}?expand={{input.order}}`,
          headers: { Authorization: 'Bearer {{secrets.TOKEN}}' },
          body: { cents: '{{input.cents}}', note: 'for {{input.order}}' },
        },
        { input: { order: 'a/b', cents: 12 } },
      ),
    );
    expect(received).toMatchObject([
      {
        method: 'POST',
        url: '/orders/a%2Fb?expand=a%2Fb',
        headers: {
          authorization: `Bearer ${SECRET}`,
          'idempotency-key': 'op_1',
          'content-type': 'application/json',
          'user-agent': 'Signalbox',
        },
        body: '{"cents":12,"note":"for a/b"}',
      },
    ]);
  });

  test('omits optional values that the model left out', async () => {
    const run = toolRun(
      { method: 'POST', url: `http://${host}/?state={{input.state}}`, body: { note: '{{input.note}}', n: 1 } },
      { input: {} },
    );
    const inputSchema = { type: 'object', properties: { state: {}, note: {} } };
    await outcomeOf({ ...run, tool: { ...run.tool, inputSchema } });
    expect(received).toMatchObject([{ url: '/', body: '{"n":1}' }]);
  });

  test('has our idempotency key, whatever the template says', async () => {
    await outcomeOf(toolRun({ headers: { 'idempotency-KEY': '{{input.k}}' } }, { input: { k: 'mine' } }));
    expect(received[0]?.headers['idempotency-key']).toBe('op_1');
  });

  test('is not sent if the input lacks a value, which is an error', async () => {
    const outcome = await outcomeOf(toolRun({ url: `http://${host}/{{input.order}}` }));
    expect(outcome).toEqual({ error: 'Nothing was sent: input.order is missing.' });
    expect(received).toEqual([]);
  });
});

describe('a secret', () => {
  const withToken = () => toolRun({ headers: { Authorization: '{{secrets.TOKEN}}' } });

  test.each([
    ['another host', 'api.example.com'],
    ['another port', '127.0.0.1:1'],
  ])('that is for %s is not sent; the error contains its name, not its value', async (_title, allowed) => {
    await setToken([allowed]);
    expect(await outcomeOf(withToken())).toEqual({
      error: 'Nothing was sent: secret TOKEN may not be sent to this host.',
    });
    expect(received).toEqual([]);
  });

  test('that is not allowed means no request, so other secrets are not sent either', async () => {
    await setToken(['api.example.com'], 'OTHER', 'other');
    const run = toolRun({ url: `http://${host}/{{secrets.TOKEN}}/{{secrets.OTHER}}` });
    expect(await outcomeOf(run)).toEqual({ error: 'Nothing was sent: secret OTHER may not be sent to this host.' });
    expect(received).toEqual([]);
  });

  test('that does not exist means no request', async () => {
    const run = toolRun({ url: `http://${host}/{{secrets.NO_SUCH}}/{{secrets.NOR_THIS}}` });
    expect(await outcomeOf(run)).toEqual({
      error: 'Nothing was sent: the environment has no secrets NOR_THIS, NO_SUCH.',
    });
    expect(received).toEqual([]);
  });

  test('of another environment is not used', async () => {
    const outcome = await outcomeOf({ ...withToken(), environment: 'staging' });
    expect(outcome).toEqual({ error: 'Nothing was sent: the environment has no secret TOKEN.' });
  });

  test('that cannot be read is an error without details', async () => {
    const db = { ...base.platform.db, query: () => Promise.reject(new Error(SECRET)) };
    const outcome = await createHttpTool({ ...base.platform, db })(withToken(), never);
    expect(outcome).toEqual({ error: 'Nothing was sent: secret TOKEN could not be read.' });
  });

  test('placeholder in the model’s input is ordinary text', async () => {
    await outcomeOf(toolRun({ url: `http://${host}/{{input.x}}` }, { input: { x: '{{secrets.TOKEN}}' } }));
    expect(received[0]?.url).toBe('/%7B%7Bsecrets.TOKEN%7D%7D');
  });
});

describe('a secret that the server returns is redacted', () => {
  const request = {
    url: 'http://unset/',
    headers: { Authorization: 'Bearer {{secrets.TOKEN}}' },
  };
  const outcomeWithToken = (body: string, headers: Record<string, string> = {}, status = 200) =>
    outcomeAfter(body, headers, status, { ...request, url: `http://${host}/?t={{secrets.TOKEN}}` });
  const escaped = [...SECRET].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

  test.each([
    ['text', `Authorization: Bearer ${SECRET}`, {}, { output: 'Authorization: Bearer [secret TOKEN]' }],
    ['a url', 'GET /?t=sk%2F4711%20%22x%22', {}, { output: 'GET /?t=[secret TOKEN]' }],
    [
      'JSON',
      JSON.stringify({ [SECRET]: [`Bearer ${SECRET}`] }),
      json,
      { output: { '[secret TOKEN]': ['Bearer [secret TOKEN]'] } },
    ],
    [
      'JSON in JSON',
      JSON.stringify({ a: JSON.stringify({ b: SECRET }) }),
      json,
      { output: { a: '{"b":"[secret TOKEN]"}' } },
    ],
    ['JSON with every character escaped', `{"a":"${escaped}"}`, json, { output: { a: '[secret TOKEN]' } }],
    ['text with NULs in between', [...SECRET].join('\0'), {}, { output: '[secret TOKEN]' }],
    [
      'JSON with NULs in between',
      `{"a":"${[...escaped.match(/\\u..../g)!].join('\\u0000')}"}`,
      json,
      { output: { a: '[secret TOKEN]' } },
    ],
  ])('from %s', async (_title, body, headers, outcome) => {
    expect(await outcomeWithToken(body, headers as Record<string, string>)).toEqual(outcome);
  });

  test('from an error, also at the place where it is cut', async () => {
    const { error } = await outcomeWithToken(`${'x'.repeat(2043)}${SECRET}`, {}, 500);
    expect(error).toBe(`HTTP 500: ${'x'.repeat(2043)}[secr`);
  });

  test('from an error in JSON with every character escaped', async () => {
    const { error } = await outcomeWithToken(`{ "a": "${escaped}" }`, json, 403);
    expect(error).toBe('HTTP 403: {"a":"[secret TOKEN]"}');
  });

  test('from an error that is too long to be read completely', async () => {
    const { error } = await outcomeWithToken(SECRET.repeat(200_000), {}, 500);
    expect(error).toBe('HTTP 500: the response is longer than 1048576 bytes, so it was not read.');
  });

  test('even if it is a number', async () => {
    await setToken([host], 'PIN', '12345678901234567890');
    const outcome = await outcomeAfter('{"pin":12345678901234567890}', json, 200, {
      url: `http://${host}/{{secrets.PIN}}`,
    });
    expect(outcome).toEqual({ output: '{"pin":[secret PIN]}' });
  });
});

describe('a response', () => {
  test.each<[string, string | Buffer, Record<string, string>, number, unknown]>([
    ['of JSON is its value', '{"a":[1,null,"ü"]}', json, 200, { a: [1, null, 'ü'] }],
    ['of another JSON type is its value', '{"a":1}', { 'content-type': 'application/problem+json' }, 201, { a: 1 }],
    ['of text is text', '{"a":1}', { 'content-type': 'text/plain' }, 200, '{"a":1}'],
    ['without a type is text', 'hello', {}, 200, 'hello'],
    [
      'in the charset that it declares is text',
      Buffer.from('Gr\u00fc\u00dfe', 'latin1'),
      { 'content-type': 'text/plain; charset=iso-8859-1' },
      200,
      'Grüße',
    ],
    [
      'of JSON in UTF-16 is its value',
      Buffer.from('\ufeff{"a":"ü"}', 'utf16le'),
      { 'content-type': 'application/json; charset=utf-16' },
      200,
      { a: 'ü' },
    ],
    [
      'of a page in the charset that it says is text',
      Buffer.concat([Buffer.from('<meta charset="shift_jis">'), Buffer.from([0x93, 0x8c, 0x8b, 0x9e])]),
      { 'content-type': 'text/html' },
      200,
      '<meta charset="shift_jis">東京',
    ],
    ['of invalid JSON is text', '{"a":', json, 200, '{"a":'],
    [
      'of JSON that is nested too deeply is text',
      '['.repeat(65) + ']'.repeat(65),
      json,
      200,
      '['.repeat(65) + ']'.repeat(65),
    ],
    ['without a body is null', '', json, 204, null],
    ['has no NUL', 'a\0b', {}, 200, 'ab'],
    ['of JSON has no NUL', '{"a\\u0000":"b\\u0000"}', json, 200, { a: 'b' }],
    ['has lone surrogates replaced', '{"a":"\\ud800"}', json, 200, { a: '\ufffd' }],
    ['may contain the names of prototypes', '{"__proto__":{"x":1}}', json, 200, JSON.parse('{"__proto__":{"x":1}}')],
  ])('%s', async (_title, body, headers, status, output) => {
    expect(await outcomeAfter(body, headers, status)).toEqual({ output });
  });

  test('may have 1 MiB, and not a byte more', async () => {
    const largest = 'x'.repeat(1024 * 1024);
    expect(await outcomeAfter(largest)).toEqual({ output: largest });
    expect(await outcomeAfter(`${largest}x`)).toEqual({
      error: 'HTTP 200: the response is longer than 1048576 bytes, so it was not read.',
    });
  });

  test.each<[string, Buffer, Record<string, string>]>([
    ['bytes that are called text', Buffer.from([0x80, 0, 1, 2]), { 'content-type': 'text/plain' }],
    ['unrequested compression', gzipSync('hello'), { 'content-encoding': 'gzip' }],
  ])('of %s is an error', async (_title, body, headers) => {
    expect(await outcomeAfter(body, headers)).toEqual({
      error: 'HTTP 200: the response is not text, so it was not read.',
    });
  });

  test('of bytes is a file, of at most 8 MiB', async () => {
    const bytes = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
    const described = { type: 'file', bytes: 4, note: 'the bytes are not shown' };
    expect(await outcomeAfter(bytes, { 'content-type': 'image/jpeg' })).toEqual({
      output: { ...described, mediaType: 'image/jpeg' },
    });
    expect(await outcomeAfter(bytes, { 'content-type': 'application/octet-stream' })).toMatchObject({
      output: described,
    });
    // A text without a better name stays a text.
    expect(await outcomeAfter('hello', { 'content-type': 'application/octet-stream' })).toEqual({ output: 'hello' });
    const large = Buffer.alloc(8 * 1024 * 1024 + 1, 0xff);
    expect(await outcomeAfter(large.subarray(1), { 'content-type': 'image/jpeg' })).toMatchObject({
      output: { bytes: 8 * 1024 * 1024 },
    });
    expect(await outcomeAfter(large, { 'content-type': 'image/jpeg' })).toEqual({
      error: 'HTTP 200: the file is larger than 8 MiB.',
    });
    const text = 'x'.repeat(1024 * 1024 + 1);
    expect(await outcomeAfter(text, { 'content-type': 'application/octet-stream' })).toEqual({
      error: 'HTTP 200: the response is longer than 1048576 bytes, so it was not read.',
    });
  });

  test('that turns out not to be text after a mebibyte is a file', async () => {
    const bytes = Buffer.alloc(2 * MIB, 'x');
    bytes[bytes.length - 1] = 0xff;
    const saved: number[] = [];
    const saveFile: SaveFile = async ({ content }) => {
      saved.push((await buffer(content)).length);
      return 'saved';
    };
    const headers = { 'content-type': 'application/octet-stream' };
    reply = (_request, response) => response.writeHead(200, headers).end(bytes);
    await outcomeOf(toolRun({}, { saveFile }));
    expect(saved).toEqual([2 * MIB]);
    // A character that is cut off at the end.
    reply = (_request, response) => response.writeHead(200, headers).end(Buffer.from('aé').subarray(0, 2));
    await outcomeOf(toolRun({}, { saveFile }));
    expect(saved).toEqual([2 * MIB, 2]);
  });

  test('of an empty file is nothing', async () => {
    expect(await outcomeAfter('', { 'content-type': 'image/png' })).toEqual({ output: null });
  });

  test.each([
    [404, 'no such order', 'HTTP 404: no such order'],
    [500, '', 'HTTP 500'],
    [304, '', 'HTTP 304'],
    [400, 'x'.repeat(5000), `HTTP 400: ${'x'.repeat(2048)}`],
    [400, `${'x'.repeat(2047)}😀`, `HTTP 400: ${'x'.repeat(2047)}\ufffd`],
  ])('with %i is an error with its beginning', async (status, body, error) => {
    expect(await outcomeAfter(body, { location: `http://${host}/elsewhere` }, status)).toEqual({ error });
    expect(received).toHaveLength(1);
  });
});

describe('a redirect', () => {
  /** Each path responds with its status and location; others with 200. */
  const routes = (table: Record<string, [status: number, location: string | undefined]>) => {
    reply = (request, response) => {
      const [status, location] = table[request.url ?? ''] ?? [200, undefined];
      response.writeHead(status, location === undefined ? {} : { location }).end(status === 200 ? request.url : '');
    };
  };
  const paths = () => received.map(({ method, url }) => `${method} ${url}`);
  const get = (more: Partial<HttpRequest> = {}) => toolRun({ url: `http://${host}/a`, ...more });

  test.each([
    [301, '/a/'],
    [302, 'a/'],
    [303, './a/?b=1'],
    [307, '//HOST/a/'],
    [308, 'http://HOST/a/'],
  ])('of a GET (%i to %s on the same host) is followed, with the same headers', async (status, location) => {
    routes({ '/a': [status, location.replace('HOST', host)] });
    const outcome = await outcomeOf(get({ headers: { 'X-Team': 'a' } }));
    expect(outcome).toEqual({ output: expect.stringMatching(/^\/a\//) });
    expect(received.map(({ headers }) => headers['x-team'])).toEqual(['a', 'a']);
  });

  test.each([307, 308])('of a POST with %i is followed with the same body, and a chain of them', async (status) => {
    routes({ '/a': [status, '/b'], '/b': [308, '/c'] });
    expect(await outcomeOf(toolRun({ method: 'POST', url: `http://${host}/a`, body: { a: 1 } }))).toEqual({
      output: '/c',
    });
    expect(paths()).toEqual(['POST /a', 'POST /b', 'POST /c']);
    expect(received.map(({ body }) => body)).toEqual(Array(3).fill('{"a":1}'));
  });

  test.each<[string, Partial<HttpRequest>, number, string | undefined, string]>([
    [
      'to another host',
      {},
      307,
      'https://b.example.com/x?token=1',
      'to https://b.example.com/x, and redirects to another host',
    ],
    ['to another port', {}, 302, 'http://127.0.0.1:1/x', 'to http://127.0.0.1:1/x, and redirects to another port'],
    ['of a POST with 302', { method: 'POST', body: {} }, 302, '/x', 'and redirects of this kind are not followed'],
    ['without an address', {}, 302, undefined, 'HTTP 302: redirects without an address are not followed.'],
    ['in a circle', {}, 302, '/a', 'HTTP 302: more than 3 redirects in a row are not followed.'],
  ])('%s is not followed, and the error says where it leads', async (title, request, status, location, words) => {
    routes({ '/a': [status, location] });
    expect(await outcomeOf(get(request))).toEqual({ error: expect.stringContaining(words) });
    expect(received).toHaveLength(title === 'in a circle' ? 4 : 1);
  });
});

describe('a request that fails', () => {
  test('because its address is not allowed is an error without the address', async () => {
    const outcome = await outcomeOf(toolRun({ url: 'http://169.254.169.254/latest/meta-data' }));
    expect(outcome).toEqual({ error: 'The destination is not allowed.' });
  });

  test('because no server is listening is an error', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    const outcome = await outcomeOf(toolRun({ url: `http://127.0.0.1:${port}/` }));
    expect(outcome).toEqual({ error: 'The host could not be connected to (ECONNREFUSED).' });
  });

  test('because the connection breaks may have taken effect', async () => {
    reply = (request) => request.socket.resetAndDestroy();
    expect(await outcomeOf(toolRun())).toEqual({
      error: 'The connection was closed before the response was complete. The request may have taken effect.',
      outcomeUnknown: true,
    });
  });

  test.each([
    ['that may run twice is sent again', true, { output: 'ok' }],
    [
      'that may not run twice may have taken effect',
      false,
      {
        error: 'The connection was closed before the response was complete. The request may have taken effect.',
        outcomeUnknown: true,
      },
    ],
  ])('because its server closes the kept connection: one %s', async (_title, repeatable, expected) => {
    const used = new Set<unknown>();
    reply = ({ socket }, response) => {
      if (used.has(socket)) return socket.destroy();
      used.add(socket);
      return response.end('ok');
    };
    const run = toolRun();
    const call = () => outcomeOf({ ...run, tool: { ...run.tool, repeatable } });
    expect(await call()).toEqual({ output: 'ok' });
    expect(await call()).toEqual(expected);
    expect(received).toHaveLength(repeatable ? 3 : 2);
    expect(new Set(received.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set(['op_1']));
  });

  test('because its time is up may have taken effect', async () => {
    reply = () => {};
    const outcome = await outcomeOf(toolRun({}, {}, { timeoutSeconds: 0.05 }));
    expect(outcome).toEqual({
      error: 'The response did not arrive in time. The request may have taken effect.',
      outcomeUnknown: true,
    });
  });

  test('has the time limit of its tool, or 30 s', async () => {
    const given: number[] = [];
    const open: OrganizationEgress['open'] = async ({ timeoutMs }) => {
      given.push(timeoutMs);
      return { status: 204, headers: {}, body: Readable.from([]) };
    };
    const { egress } = base.platform;
    const of: Egress['of'] = (organizationId) => ({ ...egress.of(organizationId), open });
    const run = createHttpTool({ ...base.platform, egress: { ...egress, of } });
    for (const tool of [{ timeoutSeconds: 300 }, {}]) await run(toolRun({}, {}, tool), never);
    expect(given).toEqual([300_000, 30_000]);
  });

  test('because it is aborted before it starts is not sent', async () => {
    const reason = new Error('interrupted');
    await expect(outcomeOf(toolRun(), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(received).toEqual([]);
  });

  test('because it is aborted throws the reason and closes the connection', async () => {
    const arrived = Promise.withResolvers<{ closed: Promise<unknown> }>();
    reply = (request) => arrived.resolve({ closed: once(request.socket, 'close') });
    const abort = new AbortController();
    const reason = new Error('interrupted');
    const outcome = outcomeOf(toolRun(), abort.signal);
    const { closed } = await arrived.promise;
    abort.abort(reason);
    await expect(outcome).rejects.toBe(reason);
    await closed;
  });
});
