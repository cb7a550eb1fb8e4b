// The console's files, below /console: one page for all its URLs, and assets with their hash in the name. Nothing is loaded from
// elsewhere, and the content security policy enforces that.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import { pageHeaders } from '../request/page-headers.ts';

const consoleHeaders = {
  // Nothing in the console is for search engines, and a share link least of all.
  'X-Robots-Tag': 'noindex, nofollow',
  ...pageHeaders({
    styles: ["style-src 'self'"],
    // The images of conversations, which the page has read through the API.
    images: ['blob:'],
  }),
};

/** Serves the built console. Without one (`directory` is undefined or empty) its URLs say how to build it. */
export async function addConsole(app: FastifyInstance, directory: string | undefined): Promise<void> {
  const isBuilt = directory !== undefined && existsSync(join(directory, 'index.html'));
  if (isBuilt) {
    await app.register(fastifyStatic, {
      root: join(directory, 'assets'),
      prefix: '/console/assets/',
      preCompressed: true,
      immutable: true,
      maxAge: '1y',
      index: false,
      decorateReply: true,
    });
  }
  const page = async ({ url }: FastifyRequest, reply: FastifyReply) => {
    if (url.startsWith('/console/api/')) throw new ApiError('not_found', 'There is no such route. See /docs.');
    if (!isBuilt) {
      throw new ApiError('not_found', 'The console is not built. Run `npm start` or `npm run build:console`.');
    }
    return reply.headers(consoleHeaders).sendFile('index.html', directory, { cacheControl: false, immutable: false });
  };
  app.get('/console', page);
  app.get('/console/*', page);
}
