// Builds and serves the page, and passes requests for the service on with an API key: as the server of an application would.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import type { Page } from 'playwright-core';
import { build } from 'vite';
import { newPage } from '../../../console/test/support/browser.ts';

export interface PageServer {
  readonly url: string;
  /** Method and path of each request for the service. */
  readonly requests: string[];
  /** What `<div id="root">` holds. */
  markup: string;
  /** Opens the page in a browser. Fails the test on an error of the page or a warning of React. */
  open(query: Record<string, string>): Promise<Page>;
  close(): void;
}

export async function servePage(service: { url: string; adminKey: string }): Promise<PageServer> {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-react-page-'));
  await build({
    root: fileURLToPath(new URL('page', import.meta.url)),
    configFile: false,
    logLevel: 'warn',
    plugins: [react()],
    // Only React's development build mounts everything twice in its strict mode, and reports what differs on hydration.
    define: { 'process.env.NODE_ENV': '"development"' },
    build: { outDir: directory, emptyOutDir: true, minify: false },
  });
  const requests: string[] = [];
  const server = createServer((incoming, response) => {
    if (incoming.url!.startsWith('/api/v1/')) {
      requests.push(`${incoming.method} ${incoming.url!.slice('/api/v1'.length)}`);
      return void pass(incoming, response);
    }
    void file(incoming.url!, response);
  });

  function pass(incoming: IncomingMessage, response: ServerResponse): void {
    const { host: _, origin: __, ...headers } = incoming.headers;
    const to = request(
      service.url + incoming.url,
      { method: incoming.method!, headers: { ...headers, authorization: `Bearer ${service.adminKey}` } },
      (from) => {
        response.writeHead(from.statusCode!, from.headers);
        from.pipe(response);
      },
    );
    to.on('error', () => response.destroy());
    response.on('close', () => to.destroy());
    incoming.pipe(to);
  }

  async function file(url: string, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(url, 'http://page');
    const name = pathname === '/' ? 'index.html' : pathname.slice(1);
    const content = await readFile(join(directory, name), 'utf8').catch(() => undefined);
    if (content === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': name.endsWith('.js') ? 'text/javascript' : 'text/html' });
    response.end(content.replace('<div id="root"></div>', () => `<div id="root">${page.markup}</div>`));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const page: PageServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    markup: '',
    async open(query) {
      const opened = await newPage(
        {},
        (message) => ['error', 'warning'].includes(message.type()) && !/Failed to load resource/.test(message.text()),
      );
      await opened.goto(`${page.url}/?${new URLSearchParams(query)}`);
      return opened;
    },
    close() {
      server.closeAllConnections();
      server.close();
      rmSync(directory, { recursive: true });
    },
  };
  return page;
}
