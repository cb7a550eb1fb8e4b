// Tools of MCP servers, over streamable HTTP.
//
//   list   asks a server for its tools, as a client of its own, and remembers the answer for a minute; that a server hangs too
//   run    calls one. The calls of one Session are one client to the server, which may keep something for it; another Session
//          is another client, so nothing that a server keeps passes from one to the other
//
// What is remembered and kept belongs to one Environment, one server and the values of its headers: a secret that is set anew, or
// that may no longer go to the host, ends it. A server is somebody else's program: mcp-fetch.ts bounds what it can send,
// mcp-list.ts what it can offer, and nothing that it says leaves here with a secret of ours in it.
import { createHash } from 'node:crypto';
import type { McpTool } from '@signalbox/contract';
import { EgressError } from '../../egress/errors.ts';
import { orAborted } from '../../lib/aborted.ts';
import type { Platform } from '../../platform.ts';
import { startDeadline } from './deadline.ts';
import type { KnownRevision, McpConnection } from './mcp-connection.ts';
import { failureFor, McpHttpError, reasonFor } from './mcp-failure.ts';
import { type Listing, listAll, turnTools } from './mcp-list.ts';
import { McpPool } from './mcp-pool.ts';
import { mcpOutcome } from './mcp-result.ts';
import { type Redacted, said } from './redact.ts';
import { type PreparedRequest, prepareRequest } from './request.ts';
import type { RunTool, ToolOutcome, ToolOwner, ToolRun, TurnTool } from './tool.ts';

export interface McpTools {
  /**
   * The tools that the server offers now; a string says why that can't be told, in words that may be shown. Throws the signal's
   * reason and nothing else.
   */
  list(owner: ToolOwner, server: McpTool, signal: AbortSignal): Promise<TurnTool[] | Redacted>;
  run: RunTool;
  /** Ends what is under way, and the sessions that servers keep for us. */
  close(): Promise<void>;
}

const DEFAULT_TIMEOUT_SECONDS = 30;
/** A turn waits for its tools before it begins. */
const LIST_TIMEOUT_SECONDS = 15;
const LIST_KEPT_MS = 60_000;
/**
 * A failure is remembered for so many times as long as it took: of a server that hangs, one turn in a minute waits and the others
 * go on without its tools. One that refuses at once is asked again at once, and may be back.
 */
const FAILURE_KEPT_TIMES = 4;
const MAX_LISTS_KEPT = 256;
/** How long a client of a server is kept after its last call. */
const KEEP_MS = 300_000;
/** Of those that were left out of a list, so many are told of in the log. */
const MAX_TOLD = 10;

interface KeptList {
  until: number;
  readonly tools: Promise<TurnTool[] | Redacted>;
  /** Known as soon as the server has been spoken to. */
  revision: KnownRevision | undefined;
}

export function createMcpTools(platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'log'>): McpTools {
  const { clock, log } = platform;
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
    void tools.then((answer) => {
      if (typeof answer !== 'string') return;
      const failed = clock.now().getTime();
      kept.until = failed + Math.min(FAILURE_KEPT_TIMES * (failed - now), LIST_KEPT_MS);
    });
    return kept;
  }

  async function connect(request: PreparedRequest, key: string, signal: AbortSignal): Promise<McpConnection> {
    const { connectMcp } = await import('./mcp-connection.ts');
    const connection = await connectMcp(platform, request, keptList(key)?.revision, signal);
    const kept = keptList(key);
    if (kept) kept.revision = connection.revision;
    return connection;
  }

  async function askForTools(owner: ToolOwner, server: McpTool, request: PreparedRequest, key: string) {
    const time = startDeadline(clock, Math.min(secondsOf(server), LIST_TIMEOUT_SECONDS), closing.signal);
    try {
      const connection = await connect(request, key, time.signal);
      try {
        const listing = await turnTools(owner, server, await listAll(connection, time.signal), request.redact);
        tellOfLeftOut(owner, server, listing);
        return listing.tools;
      } finally {
        void connection.close().catch(() => {});
      }
    } catch (error) {
      return reasonFor(error, request.redact);
    } finally {
      time.end();
    }
  }

  function tellOfLeftOut({ organizationId, environment }: ToolOwner, { name }: McpTool, { leftOut }: Listing): void {
    if (leftOut.length === 0) return;
    const tools = leftOut.slice(0, MAX_TOLD).map((tool) => `${JSON.stringify(tool.name.slice(0, 100))} ${tool.why}`);
    log.warn(
      { organizationId, environment, server: name, count: leftOut.length, tools },
      'some tools of an MCP server are left out',
    );
  }

  /** Throws what the connection throws, the signal's reason included. `onSent` hears when the call is on its way. */
  async function call(
    { tool, input, operationId, sessionId }: ToolRun,
    request: PreparedRequest,
    key: string,
    signal: AbortSignal,
    onSent: () => void,
  ): Promise<ToolOutcome> {
    const seconds = secondsOf(tool.source as McpTool);
    const open = async () => {
      // Not the caller's signal: others may wait for the same connection.
      const time = startDeadline(clock, seconds, closing.signal);
      return await connect(request, key, time.signal).finally(time.end);
    };
    for (let mayRepeat = true; ; mayRepeat = false) {
      const lease = await pool.take(JSON.stringify([sessionId ?? operationId, key]), open, signal);
      if (sessionId === undefined) lease.discard();
      try {
        onSent();
        const name = tool.remoteName ?? tool.name;
        const sent = { name, inputSchema: tool.inputSchema, input, operationId };
        return mcpOutcome(await lease.connection.call(sent, signal), request.redact);
      } catch (error) {
        const isGone = error instanceof McpHttpError && error.sessionIsGone;
        // Where a server keeps nothing for us, beginning anew costs nothing.
        if (isGone || lease.connection.stateless) lease.discard();
        // It knows nothing of the session, so it has not run what was asked in it.
        if (!isGone || !lease.kept || !mayRepeat) throw error;
      } finally {
        lease.release();
      }
    }
  }

  return {
    async list(owner, server, signal) {
      signal.throwIfAborted();
      const request = await prepareRequest(platform, owner, templateOf(server), { input: {} });
      signal.throwIfAborted();
      if (typeof request === 'string') return said`Nothing was sent: ${request}.`;
      const key = keyOf(owner, server, request);
      const kept = keptList(key) ?? keepList(key, askForTools(owner, server, request, key));
      return await orAborted(kept.tools, signal);
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
        return await call(run, request, keyOf(run, server, request), time.signal, () => {
          sent = true;
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

/** Equal only for the same server, asked in the same way for the same Environment. Holds no secret that could be read. */
function keyOf({ organizationId, environment }: ToolOwner, server: McpTool, { url, headers }: PreparedRequest): string {
  const text = JSON.stringify([organizationId, environment, server, url, Object.entries(headers).sort()]);
  return createHash('sha256').update(text).digest('base64');
}
