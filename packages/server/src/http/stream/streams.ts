// Responses that stay open: streams of events, files, and long polls. Each ends when its client leaves, when its caller loses access,
// or when the service stops.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JournalStream } from '../../journal/stream.ts';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Platform } from '../../platform.ts';
import type { Limits } from '../admission/limits.ts';
import type { OpenAccess } from '../auth/reauthorize.ts';
import { onceClosed } from '../connection/closed.ts';
import { factsOf, type RequestFacts, recordRequest } from '../connection/telemetry.ts';
import { type FileResponse, writeFile } from './file.ts';
import { createOpenResponses } from './open-responses.ts';
import type { Outlet } from './outlet.ts';
import { beginEvents, EventStream, type FirstEvent } from './sse.ts';
import type { StalledReaders } from './stalled-readers.ts';
import type { UnreadBound } from './unread-bound.ts';

export interface Streams {
  /**
   * Runs `fn` with a signal that is aborted when the client leaves. `waits`: also when the service stops, or is stopping; `fn` then
   * returns what there is.
   */
  whileWanted<T>(
    response: ServerResponse,
    fn: (signal: AbortSignal) => Promise<T>,
    options?: { waits: boolean },
  ): Promise<T>;
  /**
   * Returns when the stream is open, so that nothing waits for its end. If the service is stopping, the stream ends at once, and its client
   * reconnects to another node. `first`: the response to a change, which comes before the events as one of its own.
   */
  sendEvents(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    events: JournalStream,
    first?: FirstEvent,
  ): void;
  /** Throws 503 `unavailable` once the service stops: a file that is cut off can't be resumed. */
  sendFile(request: FastifyRequest, reply: FastifyReply, access: OpenAccess, file: FileResponse): Promise<void>;
  /** Ends streams of events and long polls, but not files, one after another over this time. */
  endOver(ms: number): Promise<void>;
  endAll(): void;
  /** Closes the connections of streams whose clients have not taken what was sent before they ended. */
  closeConnections(): void;
}

interface StreamParts {
  readonly platform: Pick<Platform, 'clock' | 'log' | 'metrics'>;
  readonly unreadBound: UnreadBound;
  readonly limits: Pick<Limits, 'countStream'>;
  readonly stalledReaders: Pick<StalledReaders, 'watch'>;
}

export function createStreams({ platform, unreadBound, limits, stalledReaders }: StreamParts): Streams {
  const open = createOpenResponses(platform.clock);
  /** A file can't be resumed on another node, so only `endAll` ends it. */
  const openFiles = createOpenResponses(platform.clock);
  /** Connections that streams have taken from node:http, which no longer knows them. */
  const connections = new Set<Socket>();
  let isStopping = false;

  /** What it is called with is all that stays in memory of a request while its stream is open. */
  function follow(
    outlet: Outlet,
    events: JournalStream,
    organizationId: string,
    access: OpenAccess,
    facts: RequestFacts,
  ): void {
    const { channel } = outlet;
    const stream = new EventStream(outlet, events, {
      wait: (bytes) => unreadBound.wait(channel, organizationId, bytes),
      onEnd(error) {
        open.remove(stream);
        stopWatching();
        record(facts, error);
      },
    });
    open.add(stream);
    const stopWatching = access.watch({ lost: () => channel.destroy(), expired: () => stream.end() });
    if (isStopping) stream.end();
    else stream.start();
  }

  function record(facts: RequestFacts, error?: unknown): void {
    // The client resumes at its cursor; the cause is for the operator.
    if (error !== undefined) platform.log.warn({ err: error, requestId: facts.requestId }, 'stream ended by an error');
    recordRequest(platform, facts);
  }

  return {
    async whileWanted(response, fn, { waits } = { waits: false }) {
      const unwanted = new AbortController();
      const wanted = { end: () => unwanted.abort(OVER) };
      if (waits && isStopping) wanted.end();
      else if (waits) open.add(wanted);
      const forget = onceClosed(response, wanted.end);
      try {
        return await fn(unwanted.signal);
      } finally {
        open.remove(wanted);
        forget();
      }
    },
    sendEvents(request, reply, access, events, first) {
      reply.hijack();
      request.isStream = true;
      const ctx = request.ctx!;
      const outlet = beginEvents(reply.raw, reply.getHeaders() as OutgoingHttpHeaders, first);
      const facts = factsOf(platform, request, reply);
      if (!outlet) return record(facts);
      const { connection } = outlet;
      if (connection) {
        // For those who watched the response, it has closed.
        connections.add(connection);
        onceClosed(connection, () => connections.delete(connection));
        stalledReaders.watch(connection);
        limits.countStream(ctx, connection);
      }
      follow(outlet, events, ctx.organizationId, access, facts);
    },
    async sendFile(request, reply, access, file) {
      if (isStopping) throw new ApiError('unavailable', 'The service is shutting down.', { retryAfterSeconds: 1 });
      reply.hijack();
      request.isStream = true;
      const over = new AbortController();
      const sending = { end: () => over.abort(OVER) };
      openFiles.add(sending);
      const stopWatching = access.watch({ lost: () => reply.raw.destroy(), expired: sending.end });
      try {
        const write = unreadBound.writerOf(reply.raw, request.ctx!.organizationId);
        await writeFile(reply.raw, reply.getHeaders() as OutgoingHttpHeaders, over.signal, write, file);
        record(factsOf(platform, request, reply));
      } catch (error) {
        record(factsOf(platform, request, reply), error);
      } finally {
        stopWatching();
        openFiles.remove(sending);
      }
    },
    endOver: (ms) => open.endOver(ms),
    endAll() {
      isStopping = true;
      open.endAll();
      openFiles.endAll();
    },
    closeConnections() {
      for (const connection of connections) connection.destroy();
    },
  };
}
