// Serves the API reference: the OpenAPI document, and the page that shows it.
import { routes } from '@signalbox/contract';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { openApiDocument } from './openapi.ts';
import { docsPage, exampleOrigin } from './page.ts';

/** `GET {prefix}/openapi.json` and `GET /docs`; `/` leads to the console. */
export function addReference(app: FastifyInstance, prefix: string, version: string, publicUrl: () => URL): void {
  let built: { text: string; page: string[] } | undefined;
  // Built by the first request: it takes longer than setting up all routes, and most nodes never serve it.
  const pages = () => {
    if (built) return built;
    const document = openApiDocument(routes, version);
    built = { text: JSON.stringify(document), page: docsPage(document).split(exampleOrigin) };
    return built;
  };
  app.get(`${prefix}/openapi.json`, async (_, reply) =>
    reply.type('application/json; charset=utf-8').send(pages().text),
  );
  app.get('/docs', async (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header(
        'Content-Security-Policy',
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      )
      .send(pages().page.join(originOf(request, publicUrl()))),
  );
  app.get('/', async (_, reply) => reply.redirect('/console'));
}

/** The origin that the request was sent to, by its Host header; the public URL if that can't be shown in a command line. */
function originOf({ protocol, host }: FastifyRequest, publicUrl: URL): string {
  const url = /^[a-z0-9.:[\]-]+$/i.test(host) ? URL.parse(`${protocol}://${host}`) : null;
  // Behind a proxy only the setting knows the scheme.
  return url === null || url.host === publicUrl.host ? publicUrl.origin : url.origin;
}
