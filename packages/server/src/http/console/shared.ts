// What the page of a share link reads, below `/console/api/shares`. The token in the body is the only credential: no cookie or key is
// looked at, and nothing else of the organization can be reached with it.
import { Readable } from 'node:stream';
import type { Route } from '@signalbox/contract';
import { type ConsoleBody, type ConsoleCall, type ConsoleResult, consoleRoutes } from '@signalbox/contract/console';
import type { FastifyInstance } from 'fastify';
import type { Platform } from '../../platform.ts';
import { openSharedFile, readShared } from '../../sessions/reading/shared.ts';
import { STRANGER_BODY_BYTES } from '../admission/admission.ts';
import { callerOf } from '../auth/auth.ts';
import { requireOwnOrigin } from '../auth/session-cookie.ts';
import { validatorOf } from '../body/validate.ts';
import { type ConsoleApiOptions, pathOf } from './routes.ts';

export function addSharedSessions(
  app: FastifyInstance,
  platform: Platform,
  { admission, limits }: Pick<ConsoleApiOptions, 'admission' | 'limits'>,
): void {
  function onCall<C extends ConsoleCall>(call: C) {
    const validate = validatorOf(consoleRoutes[call] as unknown as Route);
    return {
      options: {
        bodyLimit: STRANGER_BODY_BYTES,
        onRequest: async (request: Parameters<typeof admission.of>[0], reply: Parameters<typeof admission.of>[1]) => {
          const { headers, ipAddress } = callerOf(request);
          admission.of(request, reply).serveStranger(ipAddress);
          requireOwnOrigin(headers, platform.publicUrl());
          limits.readShare(ipAddress);
        },
      },
      read: (request: { query: unknown; body: unknown }) =>
        validate({ params: {}, query: request.query, body: request.body }) as ConsoleBody<C>,
    };
  }

  const reading = onCall('POST /shares/read');
  app.post(pathOf('POST /shares/read'), {
    ...reading.options,
    handler: async (request): Promise<ConsoleResult<'POST /shares/read'>> => {
      const { token, cursor } = reading.read(request);
      const { expiresAt, createdAt, ...shared } = await readShared(platform, token, cursor);
      return { ...shared, expiresAt: expiresAt.toISOString(), createdAt: createdAt.toISOString() };
    },
  });

  const opening = onCall('POST /shares/file');
  app.post(pathOf('POST /shares/file'), {
    ...opening.options,
    handler: async (request, reply) => {
      const { token, fileId } = opening.read(request);
      const file = await openSharedFile(platform, token, fileId);
      // Never a type that a browser shows by itself: the page makes what it shows of the bytes.
      return reply
        .header('content-type', 'application/octet-stream')
        .header('content-disposition', 'attachment')
        .header('content-length', file.bytes)
        .send(Readable.from(file.read()));
    },
  });
}
