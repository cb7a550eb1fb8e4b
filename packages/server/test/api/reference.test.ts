import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { routes } from '@signalbox/contract';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

/** As it is on the wire: `fetch` decompresses. */
async function read(path: string, headers: Record<string, string> = {}) {
  return await new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>(
    (resolve, reject) => {
      const sent = request(service.url + path, { headers }, async (response) => {
        resolve({ status: response.statusCode!, headers: response.headers, body: await buffer(response) });
      });
      sent.on('error', reject).end();
    },
  );
}

test.each([
  ['/openapi.json', 'application/json; charset=utf-8'],
  ['/api/v1/openapi.json', 'application/json; charset=utf-8'],
  ['/llms.txt', 'text/plain; charset=utf-8'],
])('%s is sent without a key, compressed to those that accept it, and once', async (path, type) => {
  const plain = await read(path);
  expect(plain).toMatchObject({ status: 200, headers: { 'content-type': type, 'cache-control': 'no-cache' } });
  expect(plain.headers['content-encoding']).toBeUndefined();
  const compressed = await read(path, { 'accept-encoding': 'br, gzip;q=0.8' });
  expect(compressed.headers).toMatchObject({
    'content-encoding': 'gzip',
    vary: 'Accept-Encoding',
    'content-type': type,
  });
  expect(gunzipSync(compressed.body)).toEqual(plain.body);
  const refused = await read(path, { 'accept-encoding': 'gzip;q=0, identity' });
  expect(refused.body).toEqual(plain.body);
  const again = await read(path, { 'if-none-match': String(plain.headers.etag) });
  expect([again.status, again.body.length]).toEqual([304, 0]);
});

test('the document is the same at both paths, and llms.txt names every operation', async () => {
  const [root, prefixed, llms] = await Promise.all(
    ['/openapi.json', '/api/v1/openapi.json', '/llms.txt'].map((path) => read(path)),
  );
  expect(root!.body).toEqual(prefixed!.body);
  const text = llms!.body.toString();
  for (const [name, { method, path }] of Object.entries(routes)) {
    expect(text).toContain(`\`${method} /api/v1${path}\``);
    expect(text).toContain(`(\`${name}\`)`);
  }
});

test('without a built page, /docs says how to build it', async () => {
  const { status, body } = await read('/docs');
  expect(status).toBe(404);
  expect(JSON.parse(body.toString()).detail).toContain('npm run build:console');
});
