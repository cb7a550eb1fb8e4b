// What every test in a browser relies on: support/browser.ts.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Route } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { openPage } from './support/browser.ts';

let origin: string;
/** Called with each request for `/slow`, which gets no response. */
let asked = () => {};
beforeAll(async () => {
  const server = createServer((request, response) => {
    if (request.url === '/slow') return asked();
    response.setHeader('content-type', 'text/html');
    response.end(request.url === '/throws' ? '<script>throw new Error("on purpose")</script>' : 'A page');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return () => {
    server.closeAllConnections();
    server.close();
  };
});

test.each([
  ['its context closes', (page) => page.context().close()],
  ['it closes', (page) => page.close()],
  ['its route is removed, and then it closes', (page) => page.unroute('**/slow')],
  ['all its routes are removed, and then it closes', (page) => page.unrouteAll()],
] satisfies [string, (page: Awaited<ReturnType<typeof openPage>>['page']) => Promise<void>][])(
  'a page fails nothing if a handler still works on a request when %s',
  async (_, end) => {
    const { page, close } = await openPage({}, () => false);
    await page.goto(origin);
    const isAsked = new Promise<void>((done) => {
      asked = done;
    });
    let handling = Promise.resolve();
    await page.route('**/slow', async (route) => {
      const ended = Promise.withResolvers<void>();
      handling = ended.promise;
      try {
        const response = await route.fetch();
        await route.fulfill({ response });
      } finally {
        ended.resolve();
      }
    });
    await page.evaluate(() => void fetch('/slow').catch(() => {}));
    await isAsked;
    await end(page);
    await close();
    await handling;
  },
);

test.each([
  ['throws', '/throws', undefined, 'on purpose'],
  ['has a handler that throws', '/', () => Promise.reject(new Error('in the handler')), 'in the handler'],
] as [string, string, ((route: Route) => Promise<void>) | undefined, string][])(
  'a page that %s fails its test at the end, with the reason',
  async (_, path, handler, reason) => {
    const { page, close } = await openPage({}, () => false);
    await page.goto(origin + path);
    if (handler) {
      const isHandled = new Promise<void>((done) => {
        asked = done;
      });
      await page.route('**/slow', (route) => {
        asked();
        return handler(route);
      });
      await page.evaluate(() => void fetch('/slow').catch(() => {}));
      await isHandled;
      // The handler has rejected meanwhile.
      await page.title();
    }
    await expect(close()).rejects.toThrow(reason);
  },
);

test('a page that writes a problem to its console fails its test at the end', async () => {
  const { page, close } = await openPage({}, (message) => message.text() === 'bad');
  await page.evaluate(() => {
    globalThis.console.log('good');
    globalThis.console.log('bad');
  });
  await expect(close()).rejects.toThrow('bad');
});
