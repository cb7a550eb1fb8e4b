// The exports that a node sends: files of any length, read page by page whenever the client has room for one. A page takes several
// statements and a few milliseconds of the event loop, so clients that read fast could use all connections to the database. Few pages are
// read at a time therefore, the organizations take turns, and each caller has few exports open.
import type { ServerResponse } from 'node:http';
import { ApiError } from '../../lib/api-error.ts';
import type { Context } from '../../lib/context.ts';
import { createFairShare } from '../../lib/fair-share.ts';
import type { ExportedFile } from '../../lib/files/exported-file.ts';
import { onceClosed } from '../connection/closed.ts';
import type { FileResponse } from './file.ts';

export interface Exports {
  /** Counts an export of the caller until its response is closed. Throws 429 `rate_limited`. */
  enter(caller: Pick<Context, 'callerId'>, response: ServerResponse): void;
  responseOf(caller: Pick<Context, 'organizationId'>, file: ExportedFile): FileResponse;
}

const EXPORTS_OF_CALLER = 3;
/** At most this many of the node's connections to the database, which every other request needs too. */
const PAGES_AT_ONCE = { max: 4, maxOfOrganization: 2 };

export function createExports(): Exports {
  const open = createFairShare({ max: Number.POSITIVE_INFINITY, maxOfOrganization: EXPORTS_OF_CALLER });
  const reading = createFairShare(PAGES_AT_ONCE);

  async function* inTurns(organizationId: string, pages: AsyncGenerator<string>, signal: AbortSignal) {
    try {
      for (;;) {
        const release = await reading.take(organizationId, 1, signal);
        if (!release) return;
        const page = await pages.next().finally(release);
        if (page.done) return;
        yield page.value;
      }
    } finally {
      await pages.return(undefined);
    }
  }

  return {
    enter({ callerId }, response) {
      const release = open.tryTake(callerId!);
      if (!release) {
        throw new ApiError('rate_limited', `The caller has ${EXPORTS_OF_CALLER} exports open, which is the limit.`, {
          retryAfterSeconds: 1,
        });
      }
      onceClosed(response, release);
    },
    responseOf: ({ organizationId }, { contentType, fileName, read }) => ({
      status: 200,
      headers: {
        'content-type': contentType,
        'content-disposition': `attachment; filename="${fileName}"`,
        'x-content-type-options': 'nosniff',
      },
      read: (signal) => inTurns(organizationId, read(signal), signal),
    }),
  };
}
