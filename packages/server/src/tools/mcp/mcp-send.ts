// The HTTP requests of the MCP client: to the URL of the agent, or to the place within the same server that it redirects to.
import type { OrganizationEgress } from '../../egress/egress.ts';
import { toEgressError } from '../../egress/errors.ts';
import { MAX_REDIRECTS, redirectOf } from '../../egress/redirect.ts';
import { McpRedirectError } from './mcp-failure.ts';

export interface McpServer {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Whether the headers may be sent to this URL. */
  mayReceive(url: URL): boolean;
}

/**
 * Resolves with any response but a redirect. `repeatable`: the message may reach the server twice. Throws `EgressError`,
 * `McpRedirectError` or the signal's reason.
 */
export type McpSend = (init: RequestInit, repeatable: boolean) => Promise<Response>;

/** `headers` are the agent's, for every request; the protocol's own headers take precedence. */
export function createMcpSend(egress: OrganizationEgress, { url, headers, mayReceive }: McpServer): McpSend {
  // The URL of all later requests of the connection, so that each is sent once.
  let current = url;

  return async (init, repeatable) => {
    const all = new Headers({ 'User-Agent': 'Signalbox', ...headers });
    for (const [name, value] of new Headers(init.headers)) all.set(name, value);
    for (let followed = 0; ; followed += 1) {
      const response = await egress.fetch(current, { ...init, headers: all, repeatable }).catch((error) => {
        throw networkFailure(error, init.signal);
      });
      const { status } = response;
      // No server of the protocol handles a message and then responds with 301 or 302.
      const sent = { url: current, method: init.method ?? 'GET', isUnprocessed: true, mayReceive };
      const redirect = redirectOf(sent, status, response.headers.get('location'));
      if (!redirect) return response;
      await response.body?.cancel().catch(() => {});
      if (redirect.url === undefined || followed === MAX_REDIRECTS) throw new McpRedirectError(status, redirect);
      current = redirect.url;
    }
  };
}

export function networkFailure(error: unknown, signal: AbortSignal | null | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  return toEgressError(error instanceof Error && error.cause !== undefined ? error.cause : error);
}
