// Serves the API reference: the OpenAPI document, a summary of it for language models, and the page that shows it (packages/console).
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { documentedRoutes } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import { pageHeaders } from '../connection/page-headers.ts';
import { llmsText } from './llms.ts';
import { openApiDocument } from './openapi.ts';

/** What the page's file has in place of a nonce. */
const NONCE = 'CSP_NONCE';

interface Document {
  text: string;
  compressed: Buffer;
  etag: string;
}

/** `GET /openapi.json`, also below the prefix, `/llms.txt` and `/docs`; `/` leads to the console. */
export function addReference(
  app: FastifyInstance,
  { prefix, version, directory }: { prefix: string; version: string; directory: string | undefined },
): void {
  // Built by the first request: most nodes never serve it.
  const openApi = once(() => documentOf(JSON.stringify(openApiDocument(documentedRoutes, version))));
  const llms = once(() => documentOf(llmsText(openApiDocument(documentedRoutes, version))));
  for (const path of ['/openapi.json', `${prefix}/openapi.json`]) {
    app.get(path, async (request, reply) => send(request, reply, 'application/json', await openApi()));
  }
  app.get('/llms.txt', async (request, reply) => send(request, reply, 'text/plain', await llms()));
  app.get('/docs', async (_, reply) => {
    const page = directory && (await readFile(join(directory, 'reference.html'), 'utf8').catch(() => undefined));
    if (!page) {
      throw new ApiError(
        'not_found',
        'The reference is not built. Run `npm start` or `npm run build:console`, or read /openapi.json.',
      );
    }
    const nonce = randomBytes(16).toString('base64');
    return reply.type('text/html; charset=utf-8').headers(headersWith(nonce)).send(page.replace(NONCE, nonce));
  });
  app.get('/', async (_, reply) => reply.redirect('/console'));
}

/** Scalar adds style sheets, which need the nonce, and places its menus by style attributes. */
const headersWith = (nonce: string) =>
  pageHeaders({
    styles: [`style-src-elem 'self' 'nonce-${nonce}'`, "style-src-attr 'unsafe-inline'"],
    images: ['data:', 'blob:'],
  });

function once<T>(build: () => Promise<T>): () => Promise<T> {
  let built: Promise<T> | undefined;
  return () => {
    built ??= build();
    return built;
  };
}

async function documentOf(text: string): Promise<Document> {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  return { text, compressed: await promisify(gzip)(text, { level: 9 }), etag };
}

/** Compressed if the client accepts it, and only if it does not have it already. */
function send({ headers }: FastifyRequest, reply: FastifyReply, type: string, document: Document): FastifyReply {
  const { text, compressed, etag } = document;
  reply.headers({ ETag: etag, 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' });
  if (headers['if-none-match'] === etag) return reply.code(304).send();
  reply.type(`${type}; charset=utf-8`);
  if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(headers['accept-encoding']))) return reply.send(text);
  return reply.header('Content-Encoding', 'gzip').send(compressed);
}
