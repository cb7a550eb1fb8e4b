// The console's files, below /console: one page for all its URLs, and assets with their hash in the name. Nothing is loaded from
// elsewhere but images that the reader asks for, and the content security policy enforces that.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';
import { pageHeaders } from '../connection/page-headers.ts';
import { addRemoteImage } from './remote-image.ts';

const consoleHeaders = {
  // Nothing in the console is for search engines, and a share link least of all.
  'X-Robots-Tag': 'noindex, nofollow',
  ...pageHeaders({
    styles: ["style-src 'self'"],
    // The images of conversations, which the page has read through the API.
    images: ['blob:'],
    // Images of other hosts, which alone can be in a frame (remote-image.ts).
    frames: ["'self'"],
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
  addRemoteImage(app);
  app.get('/console', page);
  app.get('/console/*', page);
}
