// A store that is compromised, or is not one: what it can do to a node with its responses.
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { createS3Store } from './s3-store.ts';

const SECRET = 'the-secret-access-key';
const key = { organizationId: '01a21d6a-3c35-71f4-aaf9-6023a393f61a', fileId: '01a21d6b-942c-7714-884a-ff3efeab0e91' };
const content = Buffer.from('0123456789');
const partial = { 'content-range': 'bytes 0-9/10' };

let server: Server;
let internal: Server;
let respond: (response: ServerResponse, method: string) => void;
let requests: string[];
let sentBytes: number;
const logged: object[] = [];

const portOf = (one: Server) => (one.address() as AddressInfo).port;

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'an-access-key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET);
  internal = createServer((request, response) => {
    requests.push(`internal ${request.url}`);
    response.end(content);
  });
  server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url!.split('?')[0]}`);
    response.on('error', () => {});
    request.resume().on('end', () => respond(response, request.method!));
  });
  for (const one of [internal, server]) await once(one.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  for (const one of [internal, server]) one.close().closeAllConnections();
});
afterEach(() => {
  [requests, sentBytes] = [[], 0];
  logged.length = 0;
});
requests = [];
sentBytes = 0;

function storeWith(clock: Pick<Clock, 'sleep'> = systemClock) {
  const endpoint = `http://127.0.0.1:${portOf(server)}`;
  const location = { bucket: 'files', prefix: 'test/', region: 'us-east-1', endpoint, usesPaths: true };
  const log = { warn: (fields: object) => void logged.push(fields) };
  return createS3Store(location, { log: log as never, clock });
}

/** Sends until the other end hangs up. */
function sendEndlessly(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, 'a');
  const send = (): void => {
    while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
  };
  response.on('drain', send);
  send();
}

async function read(store = storeWith()): Promise<string> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of store.read(key, { start: 0, end: content.length })) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  } catch (error) {
    return (error as Error).message;
  }
}

const error = (code: string) => `<Error><Code>${code}</Code><Message>${SECRET}</Message></Error>`;
const gone = 'The content of a file is not there any more';
const unavailable = 'The store of files is not available. Retry in a moment.';

test.each<[string, (response: ServerResponse) => void, string]>([
  ['less than it says', (response) => response.writeHead(206, partial).end('01234'), gone],
  [
    'less than its own length',
    (response) => {
      response.writeHead(206, { ...partial, 'content-length': 10 }).write('01234');
      response.destroy();
    },
    unavailable,
  ],
  ['another range', (response) => response.writeHead(206, { 'content-range': 'bytes 5-9/10' }).end('01234'), gone],
  ['a content without end', (response) => sendEndlessly(response.writeHead(206, partial)), 'a'.repeat(10)],
  ['an error without end', (response) => sendEndlessly(response.writeHead(400)), unavailable],
  [
    'a redirect to an internal address',
    (response) => response.writeHead(307, { location: `http://127.0.0.1:${portOf(internal)}/` }).end(),
    unavailable,
  ],
  [
    'another endpoint',
    (response) =>
      response
        .writeHead(301)
        .end(`<Error><Code>PermanentRedirect</Code><Endpoint>127.0.0.1:${portOf(internal)}</Endpoint></Error>`),
    unavailable,
  ],
  ['an error that quotes a secret', (response) => response.writeHead(403).end(error(SECRET)), unavailable],
])('%s', async (_title, answer, expected) => {
  respond = answer;
  expect(await read()).toBe(expected);
  expect(new Set(requests)).toEqual(new Set([`GET /files/test/${key.organizationId}/${key.fileId}`]));
  // What the buffers of both ends hold.
  expect(sentBytes).toBeLessThan(16 * 1024 * 1024);
  expect(JSON.stringify(logged)).not.toContain(SECRET);
});

test('a store that sends a byte now and then is given up, and its connection is closed', async () => {
  const [dripped, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  respond = (response) => {
    response.writeHead(206, { ...partial, 'content-length': 10 }).write('0', () => dripped.resolve());
    response.on('close', closed.resolve);
  };
  const clock = createManualClock();
  const reading = read(storeWith(clock));
  await dripped.promise;
  await clock.advance(60_000);
  expect(await reading).toBe(unavailable);
  await closed.promise;
});

test('the id that a store gives to an upload can’t change what is uploaded', async () => {
  const part = Buffer.alloc(6 * 1024 * 1024);
  respond = (response, method) =>
    method === 'POST'
      ? response.end('<R><UploadId>x&amp;partNumber=9/../../other</UploadId></R>')
      : response.setHeader('etag', '"1"').end();
  const pieces = (async function* () {
    yield part;
  })();
  await storeWith().write(key, pieces);
  expect(new Set(requests.map((line) => line.split(' ')[1]))).toEqual(
    new Set([`/files/test/${key.organizationId}/${key.fileId}`]),
  );
});
