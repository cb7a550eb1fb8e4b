// A connection to one MCP server, through the protocol's own client, which also negotiates the revision: servers of 2026-07-28 and
// later handle each request by itself; older servers keep a session that begins with a handshake.
//
// Only this file loads the client's package, about 36 MB, so it is imported with the first connection.
import {
  Client,
  type PriorDiscovery,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { OrganizationEgress } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import { onceAborted } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import type { HeldMemory } from '../../lib/memory.ts';
import { version } from '../../lib/version.ts';
import { OPERATION_ID } from './mcp-call.ts';
import { McpHttpError, McpRedirectError, McpRefusal, McpResponseError } from './mcp-failure.ts';
import { createMcpFetch, type McpCallWatch } from './mcp-fetch.ts';
import { explainRefusal } from './mcp-old-transport.ts';
import { createMcpSend, type McpServer } from './mcp-send.ts';

/** The revision that a server used last time, so that it need not be negotiated again. */
export type KnownRevision = PriorDiscovery;

export interface McpCall {
  /** The server's own name for the tool. */
  name: string;
  inputSchema: Record<string, unknown>;
  input: unknown;
  /** `op_…` */
  operationId: string;
  watch: Omit<McpCallWatch, 'onResult'>;
}

/** Every method throws `EgressError`, an error of mcp-failure.ts, or the signal's reason. */
export interface McpConnection {
  readonly revision: KnownRevision;
  /** Whether the server keeps no state for us between requests. */
  readonly stateless: boolean;
  /** A page of the list of tools, as received: any JSON value. */
  listPage(cursor: string | undefined, signal: AbortSignal): Promise<unknown>;
  /** The result of the call, as received. */
  call(call: McpCall, signal: AbortSignal): Promise<unknown>;
  /** Tells the server that its session is over, and aborts what is running. */
  close(): Promise<void>;
}

/** What the requests of one connection need. */
export interface McpNetwork {
  readonly egress: OrganizationEgress;
  readonly clock: Clock;
  /** Holds the response to a message that is not a call. */
  hold(signal: AbortSignal): HeldMemory;
}

/** The client's own limit for a request. Our signals abort it earlier. */
const TIMEOUT_MS = 600_000;

/** We parse results ourselves, and leniently: one unexpected field must not lose a list, or a result whose effect is done. */
const AS_IT_CAME = {
  '~standard': { version: 1 as const, vendor: 'signalbox', validate: (value: unknown) => ({ value }) },
};

/** Throws what the methods of a connection throw. */
export async function connectMcp(
  { egress, clock, hold }: McpNetwork,
  server: McpServer,
  known: KnownRevision | undefined,
  signal: AbortSignal,
): Promise<McpConnection> {
  signal.throwIfAborted();
  const client = new Client(
    { name: 'signalbox', version },
    {
      // None: a server's requests to us (sampling, elicitation, roots) are not supported.
      capabilities: {},
      versionNegotiation: { mode: 'auto' },
      inputRequired: { autoFulfill: false },
      // A server is responsible for following its own schemas, and evaluating them would take our time.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
    },
  );
  // By operation: calls share the connection.
  const watching = new Map<string, McpCallWatch>();
  const send = createMcpSend(egress, server);
  const transport = new StreamableHTTPClientTransport(new URL(server.url), {
    fetch: createMcpFetch(send, clock, hold, (operationId) => watching.get(operationId)),
  });
  const forget = onceAborted(signal, () => void transport.close());
  try {
    await client.connect(transport, { signal, timeout: TIMEOUT_MS, ...(known && { prior: known }) });
  } catch (error) {
    await transport.close();
    throw await explainRefusal(connectionFailure(error, signal), send, clock, signal);
  } finally {
    forget();
  }
  const discovered = client.getDiscoverResult();
  const modern = discovered !== undefined;

  async function ask<T>(request: (options: RequestOptions) => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await request({ signal, timeout: TIMEOUT_MS });
    } catch (error) {
      throw connectionFailure(error, signal);
    }
  }

  return {
    revision: modern ? { kind: 'modern', discover: discovered } : { kind: 'legacy' },
    stateless: transport.sessionId === undefined,
    async listPage(cursor, signal) {
      if (client.getServerCapabilities()?.tools === undefined) return { tools: [] };
      const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
      return await ask((options) => client.request(request, AS_IT_CAME, options), signal);
    },
    async call({ name, inputSchema, input, operationId, watch }, signal) {
      let result: unknown;
      watching.set(operationId, {
        ...watch,
        onResult(received) {
          result = received;
        },
      });
      const params = { name, arguments: input as Record<string, unknown>, _meta: { [OPERATION_ID]: operationId } };
      await ask((asked) => {
        const options = {
          ...asked,
          headers: { 'Idempotency-Key': operationId },
          // Requests progress messages, which are not read, because proxies may close a stream that is silent.
          onprogress: () => {},
        };
        // Since 2026-07-28 a schema may ask for parameters to be sent as headers too. This method adds them.
        if (modern)
          return client.callTool(params, {
            ...options,
            toolDefinition: { name, inputSchema: { ...inputSchema, type: 'object' } },
          });
        return client.request({ method: 'tools/call', params }, AS_IT_CAME, options);
      }, signal).finally(() => watching.delete(operationId));
      return result;
    },
    async close() {
      await transport.terminateSession().catch(() => {});
      await client.close();
    },
  };
}

function connectionFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const isOurs = [EgressError, McpResponseError, McpRedirectError, McpHttpError].some(
      (kind) => cause instanceof kind,
    );
    if (isOurs) return cause;
    if (cause instanceof ProtocolError) return new McpRefusal(cause.code, cause.message);
    if (cause instanceof SdkHttpError) {
      const { status, text } = cause.data;
      return new McpHttpError(status, typeof text === 'string' ? text : '');
    }
    if (cause instanceof SdkError) {
      if (cause.code === SdkErrorCode.RequestTimeout) return new EgressError('timeout', cause.message);
      if (cause.code === SdkErrorCode.ConnectionClosed) return new EgressError('aborted', cause.message);
      if (cause.code === SdkErrorCode.UnsupportedResultType)
        return new McpResponseError('it requests additional input, which is not supported');
    }
  }
  return new McpResponseError('it does not follow the protocol');
}
