// The message that calls an MCP tool, as it is stored for people who debug the call: without the arguments, which the call has already.
import type { SentMessage, StoredResponse } from '../../session-rows/operation-trace.ts';
import type { Redact } from '../tool/redact.ts';
import { storedHeaders, storedResponse } from '../tool/stored-response.ts';
import type { McpExchange } from './mcp-fetch.ts';

/** The protocol's own; the others are built again from the agent's definition. */
const PROTOCOL_HEADER = /^(mcp-|accept$|content-type$)/;
/** More than a client of the protocol adds. */
const MESSAGE_MAX_CHARACTERS = 4096;

export function storedExchange(exchange: McpExchange, redact: Redact): StoredResponse {
  const { bytes, error, message, sentHeaders } = exchange;
  const own = Object.fromEntries(Object.entries(sentHeaders).filter(([name]) => PROTOCOL_HEADER.test(name)));
  const without = withArguments(message, null);
  return {
    ...storedResponse(exchange, bytes, redact, error),
    ...(without !== undefined &&
      without.length <= MESSAGE_MAX_CHARACTERS && { sent: { message: without, headers: storedHeaders(own, redact) } }),
  };
}

/** The message as it was sent; undefined if it is not one that calls a tool. */
export function sentMessage({ message }: SentMessage, input: unknown): string | undefined {
  return withArguments(message, input);
}

/** The order of the fields is that of the text. */
function withArguments(text: string, input: unknown): string | undefined {
  const message = JSON.parse(text) as { params?: object };
  if (!message.params || !('arguments' in message.params)) return undefined;
  return JSON.stringify({ ...message, params: { ...message.params, arguments: input } });
}
