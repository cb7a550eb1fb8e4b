// Responses that stay open: streams of events, files, and long polls. Each ends when its client leaves, when its caller loses access,
// or when the service stops.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JournalStream } from '../../journal/live.ts';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Platform } from '../../platform.ts';
import { onceClosed } from './closed.ts';
import { type FileResponse, writeFile } from './file.ts';
import { createOpenResponses, type OpenResponses } from './open-responses.ts';
import type { OpenAccess } from './reauthorise.ts';
import { type FirstEvent, writeEvents } from './sse.ts';
import { recordRequest } from './telemetry.ts';
import type { UnreadBound, Write } from './unread-bound.ts';

export interface Streams {
  /** Throws 503 `unavailable` once the service stops: nothing would end a response that is opened later. */
  requireServing(): void;
  /** Runs `fn` with a signal that is aborted when the client leaves or the service stops. */
  whileWanted<T>(response: ServerResponse, fn: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** `first`: the response to a change, which comes before the events as one of its own. */
  sendEvents(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    events: JournalStream,
    first?: FirstEvent,
  ): Promise<void>;
  sendFile(request: FastifyRequest, reply: FastifyReply, access: OpenAccess, file: FileResponse): Promise<void>;
  /** Ends streams of events and long polls, but not files, one after another over this time. */
  endOver(ms: number): Promise<void>;
  endAll(): void;
}

type Send = (response: ServerResponse, headers: OutgoingHttpHeaders, over: AbortSignal, write: Write) => Promise<void>;

export function createStreams(
  platform: Pick<Platform, 'clock' | 'log' | 'metrics'>,
  unreadBound: UnreadBound,
): Streams {
  const open = createOpenResponses(platform.clock);
  /** A file can't be resumed on another node, so only `endAll` ends it. */
  const openFiles = createOpenResponses(platform.clock);
  let isStopping = false;

  function requireServing(): void {
    if (isStopping) throw new ApiError('unavailable', 'The service is shutting down.', { retryAfterSeconds: 1 });
  }

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    responses: OpenResponses,
    send: Send,
  ): Promise<void> {
    reply.hijack();
    request.isStream = true;
    const over = new AbortController();
    // What has been done is reported, although nothing can follow it here.
    if (isStopping) over.abort(OVER);
    const forget = responses.add(() => over.abort(OVER));
    const sent = new AbortController();
    access.watch({ lost: () => reply.raw.destroy(), expired: () => over.abort(OVER) }, sent.signal);
    try {
      const write = unreadBound.writerOf(reply.raw, request.ctx!.organizationId);
      await send(reply.raw, reply.getHeaders() as OutgoingHttpHeaders, over.signal, write);
    } catch (error) {
      // The client resumes at its cursor; the cause is for the operator.
      platform.log.warn({ err: error, requestId: request.id }, 'stream ended by an error');
    } finally {
      sent.abort(OVER);
      forget();
      recordRequest(platform, request, reply);
    }
  }

  return {
    requireServing,
    async whileWanted(response, fn) {
      const unwanted = new AbortController();
      const end = () => unwanted.abort(OVER);
      const forgets = [open.add(end), onceClosed(response, end)];
      try {
        return await fn(unwanted.signal);
      } finally {
        for (const forget of forgets) forget();
      }
    },
    async sendEvents(request, reply, access, events, first) {
      if (first === undefined) requireServing();
      await stream(request, reply, access, open, (...to) => writeEvents(...to, events, first));
    },
    async sendFile(request, reply, access, file) {
      requireServing();
      await stream(request, reply, access, openFiles, (...to) => writeFile(...to, file));
    },
    endOver: (ms) => open.endOver(ms),
    endAll() {
      isStopping = true;
      open.endAll();
      openFiles.endAll();
    },
  };
}
