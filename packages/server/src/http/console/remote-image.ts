// The frame in which the console shows an image of another host, once the reader asked for it. The console itself loads nothing from
// elsewhere; this page may load images, and nothing else: no script runs in it, and it has an origin of its own.
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../../lib/api-error.ts';

const STYLE = 'html,body{height:100%;margin:0}img{display:block;width:100%;height:100%;object-fit:scale-down}';

const frameHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    // A redirect can lead to another host.
    'img-src https:',
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    'sandbox',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
};

/** `GET /console/remote-image?src=…&alt=…` */
export function addRemoteImage(app: FastifyInstance): void {
  app.get('/console/remote-image', async (request, reply) => {
    requireFrame(request);
    const { src, alt } = request.query as Record<string, unknown>;
    const address = addressOf(src);
    if (!address) throw new ApiError('invalid_request', 'src must be an https address without user info.');
    const image = `<img src="${escaped(address)}" alt="${escaped(typeof alt === 'string' ? alt : '')}">`;
    return reply
      .type('text/html; charset=utf-8')
      .headers(frameHeaders)
      .send(
        `<!doctype html><meta name="color-scheme" content="light dark"><title>Image</title><style>${STYLE}</style>${image}`,
      );
  });
}

/** As a page of its own, it would show what its link says under our address. Browsers that say where a page is shown are believed. */
function requireFrame({ headers }: FastifyRequest): void {
  const [shownIn, askedBy] = [headers['sec-fetch-dest'], headers['sec-fetch-site']];
  if ((shownIn ?? 'iframe') === 'iframe' && (askedBy ?? 'same-origin') === 'same-origin') return;
  throw new ApiError('not_found', 'This image is shown only within the console.');
}

function addressOf(src: unknown): string | undefined {
  if (typeof src !== 'string' || !URL.canParse(src)) return undefined;
  const { protocol, username, password, href } = new URL(src);
  return protocol === 'https:' && username === '' && password === '' ? href : undefined;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}
