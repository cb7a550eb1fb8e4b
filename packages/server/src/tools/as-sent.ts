// The request of a call of an `http` or `mcp` tool, built again from its template for people who debug the call.
import type { EndUser, HttpTool, McpTool, SentRequest } from '@signalbox/contract';
import type { SentMessage } from '../session-rows/operation-trace.ts';
import { OPERATION_ID } from './mcp/mcp-call.ts';
import { sentMessage } from './mcp/mcp-message.ts';
import { shownSecrets } from './request/shown-secrets.ts';
import { type RenderedRequest, renderRequest, TemplateError } from './request/template.ts';
import { type RequestTemplate, secretNames } from './request/template-texts.ts';

interface Given {
  input: unknown;
  endUser: EndUser | null;
  /** `op_…` */
  operationId: string;
}

/** A string says why nothing could be sent. */
export function httpRequestAsSent(tool: HttpTool, { input, endUser, operationId }: Given): SentRequest | string {
  return built(tool.request, { input, inputSchema: tool.inputSchema, endUser }, ({ headers, ...request }) => {
    const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'idempotency-key');
    const all = { 'User-Agent': 'Signalbox', ...Object.fromEntries(own), 'Idempotency-Key': operationId };
    return { ...request, headers: all };
  });
}

/** The message that calls the tool. `name`: the server's own name for it. `sent`: what is stored of it. */
export function mcpRequestAsSent(
  { url, headers }: McpTool,
  name: string,
  { input, endUser, operationId }: Given,
  sent: SentMessage | undefined,
): SentRequest | string {
  const template = { method: 'POST', url, ...(headers && { headers }) };
  const params = { name, arguments: input, _meta: { [OPERATION_ID]: operationId } };
  const guessed = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const usual = [
    ['accept', 'application/json, text/event-stream'],
    ['content-type', 'application/json'],
  ];
  const protocol = sent?.headers ?? usual;
  return built(template, { input: {}, endUser }, (request) => {
    const taken = new Set(['idempotency-key', ...protocol.map(([name]) => name)]);
    const own = Object.entries(request.headers).filter(([name]) => !taken.has(name.toLowerCase()));
    return {
      ...request,
      headers: {
        'User-Agent': 'Signalbox',
        ...Object.fromEntries([...own, ...protocol]),
        'Idempotency-Key': operationId,
      },
      body: (sent && sentMessage(sent, input)) ?? guessed,
    };
  });
}

function built(
  template: RequestTemplate,
  given: { input: unknown; inputSchema?: unknown; endUser: EndUser | null },
  complete: (request: RenderedRequest) => RenderedRequest,
): SentRequest | string {
  const names = secretNames(template);
  try {
    return shownSecrets(names, (markOf) => {
      const secrets = Object.fromEntries(names.map((name) => [name, markOf(name)]));
      return complete(renderRequest(template, { ...given, secrets }));
    });
  } catch (error) {
    if (error instanceof TemplateError) return error.message;
    throw error;
  }
}
