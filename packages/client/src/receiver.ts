/**
 * A webhook endpoint, for `node:http` and Express (`receiver.node`) and for everything that handles a `Request`
 * (`receiver.fetch`).
 *
 * | response | when | what the service does |
 * |---|---|---|
 * | 200 `{ "received": true }` | `onChunks` resolved | continues with the session's next delivery |
 * | 401 | verification failed | in a grace period, tries the previous secret; otherwise retries later |
 * | 405, 413 | not POST, or over `maxBytes` | retries later |
 * | 500 | `onChunks` threw, or the body was already parsed | retries later |
 */
import type { Envelope } from './types.generated.ts';
import { deliveryHeaders } from './types.generated.ts';
import {
  checkedSecrets,
  type HeadersLike,
  headerValue,
  rawBodyNeeded,
  type VerifyOptions,
  verify,
  WebhookVerificationError,
} from './webhooks.ts';

/** Facts about a delivery from its headers, which the signature does not cover. */
export interface Delivery {
  /** `whd_…`, the same for all attempts. Use it to detect duplicates. */
  deliveryId: string;
  /** Counts from 1. */
  attempt: number;
  /** The cursor that you acknowledged last in this session; null: none. If it is not the one you have, chunks are missing. */
  previousCursor: string | null;
}

export interface ReceiverOptions extends VerifyOptions {
  /** The signing secret; during the grace period of a rotation, the previous and the new one. */
  secrets: string | readonly string[];
  /**
   * Called for each verified delivery. Store what you need before you resolve: the delivery then counts as received. If it
   * throws, the delivery is retried. A delivery can come twice. The service waits 15 seconds for the response.
   */
  onChunks: (envelope: Envelope, delivery: Delivery) => unknown;
  /** Called with errors of `onChunks` and with configuration errors. Default: `console.error`. */
  onError?: ((error: unknown) => void) | undefined;
  /** The longest accepted body, in bytes. Default: 8 MiB. */
  maxBytes?: number | undefined;
}

/** The required part of node's `IncomingMessage` or Express's `Request`. */
export interface NodeRequest extends AsyncIterable<unknown> {
  method?: string | undefined;
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Set if a framework has already read the body. */
  body?: unknown;
  /** Whether the body, or a part of it, has been read. */
  readableDidRead?: boolean | undefined;
}

/** The required part of node's `ServerResponse`. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

export interface Receiver {
  /** `createServer(receiver.node)`, `app.post(path, receiver.node)`. Never rejects. */
  node: (request: NodeRequest, response: NodeResponse) => Promise<void>;
  /** `(request: Request) => Promise<Response>`. Never rejects. */
  fetch: (request: Request) => Promise<Response>;
}

interface ReceiverResponse {
  status: number;
  body: { received: true } | { received: false; reason: string };
  headers?: Record<string, string>;
}

/** Far above any delivery, which has 64 KiB, or a single chunk that is longer. */
const defaultMaxBytes = 8 * 1024 * 1024;

/**
 * Creates a webhook endpoint.
 *
 *     const receiver = webhooks.receiver({ secrets, onChunks: async ({ sessionId, chunks }) => … });
 *     createServer(receiver.node).listen(8080);
 *
 * @throws TypeError if there is no secret
 */
export function receiver(options: ReceiverOptions): Receiver {
  const { onChunks, onError = console.error, maxBytes = defaultMaxBytes } = options;
  const secrets = checkedSecrets(options.secrets);

  async function respond(
    method: string | undefined,
    headers: HeadersLike,
    read: () => Promise<Uint8Array | string | undefined>,
  ): Promise<ReceiverResponse> {
    if (method !== 'POST') return { ...refused(405, 'method_not_allowed'), headers: { allow: 'POST' } };
    try {
      const body = await read();
      // The rest of the body is not read, so the connection can't be reused.
      if (body === undefined) return { ...refused(413, 'body_too_large'), headers: { connection: 'close' } };
      const envelope = await verify(body, headers, secrets, options);
      await onChunks(envelope, deliveryIn(headers));
      return { status: 200, body: { received: true } };
    } catch (error) {
      if (error instanceof WebhookVerificationError) return refused(401, error.reason);
      onError(error);
      return refused(500, 'not_processed');
    }
  }

  return {
    async node(request, response) {
      const { status, body, headers } = await respond(request.method, request.headers, () =>
        nodeBody(request, maxBytes),
      );
      response.statusCode = status;
      response.setHeader('content-type', 'application/json');
      for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
      response.end(JSON.stringify(body));
    },
    async fetch(request) {
      const { status, body, headers } = await respond(request.method, request.headers, () =>
        collect(request.body ?? new Blob([]).stream(), maxBytes),
      );
      return Response.json(body, { status, ...(headers && { headers }) });
    },
  };
}

function refused(status: number, reason: string): ReceiverResponse {
  return { status, body: { received: false, reason } };
}

function deliveryIn(headers: HeadersLike): Delivery {
  return {
    deliveryId: headerValue(headers, deliveryHeaders.deliveryId) ?? '',
    attempt: Number(headerValue(headers, deliveryHeaders.attempt) ?? 1),
    previousCursor: headerValue(headers, deliveryHeaders.previousCursor) ?? null,
  };
}

async function nodeBody(request: NodeRequest, maxBytes: number): Promise<Uint8Array | string | undefined> {
  const { body } = request;
  if (body === undefined || body === null) {
    // Fastify keeps what it has read to itself.
    if (request.readableDidRead) throw new TypeError(rawBodyNeeded);
    return await collect(request, maxBytes);
  }
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw new TypeError(rawBodyNeeded);
  return body.length > maxBytes ? undefined : body;
}

/** All bytes; undefined as soon as there are more than `maxBytes`. */
async function collect(body: AsyncIterable<unknown>, maxBytes: number): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // Not `for await`: leaving that early destroys node's request, and with it the socket of the response.
  const iterator = body[Symbol.asyncIterator]();
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    const part = typeof next.value === 'string' ? new TextEncoder().encode(next.value) : (next.value as Uint8Array);
    length += part.length;
    if (length > maxBytes) return undefined;
    parts.push(part);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
