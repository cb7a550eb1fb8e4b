// A server of tools, which counts its calls by their idempotency key (P7).
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CreateAgent } from '@signalbox/client';
import type { SeenCall } from '../../packages/server/test/support/history.ts';

export interface ToolServer {
  /** By operation id. */
  calls: ReadonlyMap<string, SeenCall>;
  /** A tool of this server, for the definition of an agent. */
  tool(name: string, more?: object): NonNullable<CreateAgent['tools']>[number];
  close(): Promise<void>;
}

/** `respond` gets each call, with how often it has arrived, and resolves with its response when that may be sent. */
export async function startToolServer(respond: (call: SeenCall) => Promise<unknown>): Promise<ToolServer> {
  const calls = new Map<string, SeenCall>();
  const server = createServer(async (request, response) => {
    const operationId = String(request.headers['idempotency-key']);
    const call = calls.get(operationId) ?? { tool: request.url!.slice(1), times: 0, answered: 0 };
    calls.set(operationId, call);
    call.times += 1;
    const output = await respond({ ...call });
    if (!response.closed) call.answered += 1;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(output));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    calls,
    tool: (name, more = {}) => ({
      type: 'http',
      name,
      description: name,
      inputSchema: { type: 'object' },
      request: { method: 'POST', url: `${url}/${name}` },
      approval: 'never',
      ...more,
    }),
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
}
