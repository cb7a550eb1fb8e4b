// Tools of MCP servers, over streamable HTTP.
//
//   list   reads a server's tools over a connection of its own, and caches them for a minute; failures of slow servers are cached too
//   run    runs a call. All calls of a session use one connection, for which the server may keep state; each session has its
//          own connection, so no state passes from one session to another
//
// Caches and connections are separate for each environment, server and set of header values. They are not used any more once a
// secret changes or may no longer be sent to the host. The server is not trusted: mcp-fetch.ts limits what it can send, mcp-list.ts
// limits what it can offer, and our secrets are redacted from everything that it returns.
import { createHash } from 'node:crypto';
import type { McpTool } from '@signalbox/contract';
import { EgressError } from '../../egress/errors.ts';
import { orAborted } from '../../lib/aborted.ts';
import { holdMemory } from '../../lib/memory.ts';
import type { Platform } from '../../platform.ts';
import { startDeadline } from '../request/deadline.ts';
import { type PreparedRequest, prepareRequest } from '../request/request.ts';
import { type Redacted, trustedText } from '../tool/redact.ts';
import { storeFiles } from '../tool/returned-file.ts';
import type { RunTool, ToolOutcome, ToolOwner, ToolRun, TurnTool } from '../tool/tool.ts';
import type { KnownRevision, McpConnection } from './mcp-connection.ts';
import { failureFor, McpSessionLost, reasonFor } from './mcp-failure.ts';
import type { McpExchange } from './mcp-fetch.ts';
import { type Listing, listAll, turnTools } from './mcp-list.ts';
import { storedExchange } from './mcp-message.ts';
import { McpPool } from './mcp-pool.ts';
import { mcpOutcome } from './mcp-result.ts';
import { sessionLoss } from './mcp-session-loss.ts';

export interface McpTools {
  /**
   * The tools that the server offers now; a string is the reason why they can't be listed, and may be shown. Throws only the
   * signal's reason.
   */
  list(owner: ToolOwner, server: McpTool, signal: AbortSignal): Promise<TurnTool[] | Redacted>;
  /** All tools of the server, read again; for people who choose some. A string is the reason why they can't be listed. */
  inspect(owner: ToolOwner, server: McpTool, signal: AbortSignal): Promise<Listing | Redacted>;
  run: RunTool;
  /** Aborts running calls, and ends the sessions that servers keep for us. */
  close(): Promise<void>;
}

const DEFAULT_TIMEOUT_SECONDS = 30;
/** A turn waits for its tools before it begins. */
const LIST_TIMEOUT_SECONDS = 15;
const LIST_KEPT_MS = 60_000;
/**
 * A failure is cached for this many times as long as it took. With a server that hangs, one turn per minute waits, and the others
 * continue without its tools. A server that refuses at once is tried again at once, because it may be back.
 */
const FAILURE_KEPT_TIMES = 4;
const MAX_LISTS_KEPT = 256;
/** How long a connection is kept after its last call. */
const KEEP_MS = 300_000;
/** How many of the tools that were left out are named in the log. */
const MAX_LOGGED = 10;

interface KeptList {
  until: number;
  readonly tools: Promise<TurnTool[] | Redacted>;
  /** Known after the first successful connection. */
  revision: KnownRevision | undefined;
}

export function createMcpTools(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'log' | 'memory'>,
): McpTools {
  const { clock, egress, log, memory } = platform;
  const lists = new Map<string, KeptList>();
  const pool = new McpPool(clock, KEEP_MS);
  const closing = new AbortController();

  function keptList(key: string): KeptList | undefined {
    const kept = lists.get(key);
    return kept && kept.until > clock.now().getTime() ? kept : undefined;
  }

  function keepList(key: string, tools: KeptList['tools']): KeptList {
    const now = clock.now().getTime();
    for (const [other, { until }] of lists) if (until <= now || lists.size >= MAX_LISTS_KEPT) lists.delete(other);
    const kept: KeptList = { until: now + LIST_KEPT_MS, tools, revision: undefined };
    lists.set(key, kept);
    void tools.then((listed) => {
      if (typeof listed !== 'string') return;
      const failed = clock.now().getTime();
      kept.until = failed + Math.min(FAILURE_KEPT_TIMES * (failed - now), LIST_KEPT_MS);
    });
    return kept;
  }

  async function connectAs(
    { organizationId }: ToolOwner,
    request: PreparedRequest,
    revision: KnownRevision | undefined,
    signal: AbortSignal,
  ): Promise<McpConnection> {
    const { connectMcp } = await import('./mcp-connection.ts');
    const hold = (signal: AbortSignal) => holdMemory(memory, organizationId, signal);
    return await connectMcp({ egress: egress.of(organizationId), clock, hold }, request, revision, signal);
  }

  async function connect(
    owner: ToolOwner,
    request: PreparedRequest,
    key: string,
    signal: AbortSignal,
  ): Promise<McpConnection> {
    const connection = await connectAs(owner, request, keptList(key)?.revision, signal);
    const kept = keptList(key);
    if (kept) kept.revision = connection.revision;
    return connection;
  }

  async function askForTools(owner: ToolOwner, server: McpTool, request: PreparedRequest, key: string) {
    const time = startDeadline(clock, Math.min(secondsOf(server), LIST_TIMEOUT_SECONDS), closing.signal);
    try {
      const connection = await connect(owner, request, key, time.signal);
      try {
        const listing = await turnTools(owner, server, await listAll(connection, time.signal), request.redact);
        logOmittedTools(owner, server, listing);
        return listing.problem ?? listing.tools;
      } finally {
        void connection.close().catch(() => {});
      }
    } catch (error) {
      return reasonFor(error, request.redact);
    } finally {
      time.end();
    }
  }

  function logOmittedTools({ organizationId, environment }: ToolOwner, { name }: McpTool, { leftOut }: Listing): void {
    if (leftOut.length === 0) return;
    const tools = leftOut.slice(0, MAX_LOGGED).map((tool) => `${JSON.stringify(tool.name.slice(0, 100))} ${tool.why}`);
    log.warn(
      { organizationId, environment, server: name, count: leftOut.length, tools },
      'some tools of an MCP server are left out',
    );
  }

  /** Throws what the connection throws, `McpSessionLost`, and the signal's reason. `onSent` is called whenever it may have taken effect. */
  async function call(
    run: ToolRun,
    request: PreparedRequest,
    key: string,
    signal: AbortSignal,
    onSent: (mayHaveRun: boolean) => void,
  ): Promise<ToolOutcome> {
    const { tool, input, operationId, sessionId, saveFile, onResponse } = run;
    const { repeatable } = tool;
    const seconds = secondsOf(tool.source as McpTool);
    const open = async () => {
      // Not the caller's signal, because other callers may wait for the same connection.
      const time = startDeadline(clock, seconds, closing.signal);
      return await connect(run, request, key, time.signal).finally(time.end);
    };
    for (let mayRepeat = true; ; mayRepeat = false) {
      const lease = await pool.take(JSON.stringify([sessionId ?? operationId, key]), open, signal);
      if (sessionId === undefined) lease.discard();
      const held = run.held ?? holdMemory(memory, run.organizationId, signal);
      try {
        onSent(true);
        const name = tool.remoteName ?? tool.name;
        const onExchange = (exchange: McpExchange) => onResponse?.(storedExchange(exchange, request.redact));
        const watch = { held, onExchange, repeatable };
        const sent = { name, inputSchema: tool.inputSchema, input, operationId, watch };
        const outcome = mcpOutcome(await lease.connection.call(sent, signal), request.redact);
        return await storeFiles(outcome, request.redact, saveFile);
      } catch (error) {
        const lost = await sessionLoss(error, lease, clock, signal);
        // Opening another connection costs nothing if the server keeps no state for it.
        if (lost || lease.connection.stateless) lease.discard();
        const list = lost && keptList(key);
        // Another revision of the server may run now.
        if (list) list.revision = undefined;
        if (lost && !lost.isUnprocessed && !repeatable) throw new McpSessionLost('lost', { cause: error });
        if (!lost || !lease.kept || !mayRepeat) throw error;
        onSent(!lost.isUnprocessed);
      } finally {
        if (!run.held) held.release();
        lease.release();
      }
    }
  }

  return {
    async list(owner, server, signal) {
      signal.throwIfAborted();
      const request = await prepareRequest(platform, owner, templateOf(server), { input: {} });
      signal.throwIfAborted();
      if (typeof request === 'string') return trustedText`Nothing was sent: ${request}.`;
      const key = keyOf(owner, server, request);
      const kept = keptList(key) ?? keepList(key, askForTools(owner, server, request, key));
      return await orAborted(kept.tools, signal);
    },

    async inspect(owner, server, signal) {
      const request = await prepareRequest(platform, owner, templateOf(server), { input: {} });
      if (typeof request === 'string') return trustedText`Nothing was sent: ${request}.`;
      const time = startDeadline(clock, LIST_TIMEOUT_SECONDS, signal, closing.signal);
      try {
        const connection = await connectAs(owner, request, undefined, time.signal);
        try {
          return await turnTools(owner, server, await listAll(connection, time.signal), request.redact, { all: true });
        } finally {
          void connection.close().catch(() => {});
        }
      } catch (error) {
        signal.throwIfAborted();
        return reasonFor(error, request.redact);
      } finally {
        time.end();
      }
    },

    async run(run, signal) {
      signal.throwIfAborted();
      const { source: server } = run.tool;
      if (server.type !== 'mcp') throw new TypeError(`${run.tool.name} is not a tool of an MCP server`);
      const request = await prepareRequest(platform, run, templateOf(server), { input: {} });
      signal.throwIfAborted();
      if (typeof request === 'string') return { error: `Nothing was sent: ${request}.` };
      const time = startDeadline(clock, secondsOf(server), signal, closing.signal);
      let sent = false;
      try {
        return await call(run, request, keyOf(run, server, request), time.signal, (mayHaveRun) => {
          sent = mayHaveRun;
        });
      } catch (error) {
        signal.throwIfAborted();
        return failureFor(error, request.redact, sent);
      } finally {
        time.end();
      }
    },

    async close() {
      closing.abort(new EgressError('aborted', 'the service is stopping'));
      await pool.close();
    },
  };
}

function secondsOf({ timeoutSeconds = DEFAULT_TIMEOUT_SECONDS }: McpTool): number {
  return timeoutSeconds;
}

function templateOf({ url, headers }: McpTool) {
  return { method: 'POST', url, ...(headers && { headers }) };
}

/** Equal only for the same server, with the same settings and headers, in the same environment. A digest, so no secret can be read. */
function keyOf({ organizationId, environment }: ToolOwner, server: McpTool, { url, headers }: PreparedRequest): string {
  const text = JSON.stringify([organizationId, environment, server, url, Object.entries(headers).sort()]);
  return createHash('sha256').update(text).digest('base64');
}
