// Ends requests whose bodies arrive too slowly, with 408. A body has as long as the operator configured. An upload may take longer, but
// never be silent for so long; only the time in which this node waits for its client counts.
import type { IncomingMessage } from 'node:http';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import { requestTimeout } from '../connection/server.ts';
import { hasBody } from './body.ts';

export interface SlowBodies {
  /** Watches a request until `arrived`. */
  watch(request: IncomingMessage): void;
  arrived(request: IncomingMessage): void;
  /** The body of an upload as it arrives. Throws a 400 if the client leaves in the middle. */
  upload(request: IncomingMessage): AsyncGenerator<Buffer>;
  stop(): Promise<void>;
}

const CHECK_EVERY_MS = 1_000;
/** All waiting for the client of one upload together: 32 MiB at 37 KiB/s. */
const MAX_UPLOAD_WAIT_MS = 15 * 60_000;

interface ArrivingBody {
  /** When the current wait for the client began; undefined while the client waits for this node. */
  since: number | undefined;
  /** The waits before it. */
  waitedMs: number;
}

export function createSlowBodies(clock: Clock, requestTimeoutMs: number): SlowBodies {
  const arriving = new Map<IncomingMessage, ArrivingBody>();
  const stopping = new AbortController();
  const now = () => clock.now().getTime();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(CHECK_EVERY_MS, stopping.signal).catch(() => {});
      for (const [request, { since, waitedMs }] of arriving) {
        if (request.complete || request.destroyed) arriving.delete(request);
        else if (since !== undefined) {
          const ms = now() - since;
          if (ms >= requestTimeoutMs || waitedMs + ms >= MAX_UPLOAD_WAIT_MS) requestTimeout(request.socket);
        }
      }
    }
  }

  const running = run();
  return {
    watch(request) {
      if (hasBody(request)) arriving.set(request, { since: now(), waitedMs: 0 });
    },
    arrived: (request) => void arriving.delete(request),
    async *upload(request) {
      const body: ArrivingBody = { since: now(), waitedMs: 0 };
      arriving.set(request, body);
      try {
        // A refusal in the middle must not close the connection: the client could not read it.
        for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          body.waitedMs += now() - body.since!;
          body.since = undefined;
          yield chunk;
          body.since = now();
        }
      } catch (error) {
        if (!request.complete) throw new ApiError('invalid_request', 'The body ended early.');
        throw error;
      } finally {
        arriving.delete(request);
      }
    },
    async stop() {
      stopping.abort(OVER);
      await running;
    },
  };
}
