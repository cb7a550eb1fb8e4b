// A service and a model whose responses a test scripts, as a page and the program behind it have them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Signalbox } from '@signalbox/client';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type ChatResponse, refuse, respond, startOpenAiServer } from '../../../server/test/support/openai-server.ts';
import { startTestService, type TestService, watchSecret } from '../../../server/test/support/service.ts';

export interface World {
  readonly service: TestService;
  readonly client: Signalbox;
  readonly agentId: string;
  readonly open: { agentId: string; environment: string };
  /** The client of an end user's page. */
  pageOf(endUserId: string): Signalbox;
  /** What the model responds next, in order. */
  next(...responses: ChatResponse[]): void;
  /** A response whose first text is sent at once, and the rest when the function that is returned is called. */
  nextInTwo(first: string, rest: ChatResponse): () => void;
  /** The model refuses the next request, which is not retried. */
  refuseNext(): void;
  /** What the model has got, newest last. */
  readonly requests: { messages: { role: string; content: unknown }[] }[];
  /** The inputs of the calls of `refund` that ran. */
  readonly refunds: unknown[];
}

/** A service for a test file, with a model and an agent for each test. The agent has an `http` tool `refund` that needs approval, `credit`, whose approval is the end user's, and a
 * `client` tool `where`. */
export function startWorld(): World {
  const refunds: unknown[] = [];
  const shop = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    refunds.push(JSON.parse(body));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
  let service: TestService;
  let model: Awaited<ReturnType<typeof startOpenAiServer>>;
  let agentId: string;

  beforeAll(async () => {
    service = await startTestService();
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
  });
  // Each test has a model of its own, so that what one leaves behind reaches no other.
  beforeEach(async () => {
    model = await startOpenAiServer();
    refunds.length = 0;
    const inputSchema = { type: 'object', properties: { cents: { type: 'integer' } } };
    ({ agentId } = await service.client.agents.create({
      name: 'Support',
      model: { provider: 'openai-compatible', model: 'any', baseUrl: model.url },
      tools: [
        {
          type: 'http',
          name: 'refund',
          description: 'Refunds an order.',
          inputSchema,
          request: {
            method: 'POST',
            url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}/refunds`,
            body: { cents: '{{input.cents}}' },
          },
          approval: 'always',
        },
        {
          type: 'http',
          name: 'credit',
          description: 'Credits an amount.',
          inputSchema,
          request: {
            method: 'POST',
            url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}/credits`,
            body: { cents: '{{input.cents}}' },
          },
          approval: { policy: 'always', by: { endUser: true } },
        },
        { type: 'client', name: 'where', description: 'Where the user is.', inputSchema: { type: 'object' } },
      ],
    }));
  });
  afterEach(() => model.close());
  afterAll(async () => {
    await service.stop();
    shop.close();
  });

  return {
    get service() {
      return service;
    },
    get client() {
      return service.client;
    },
    get agentId() {
      return agentId;
    },
    get open() {
      return { agentId, environment: 'production' };
    },
    pageOf: (endUserId) =>
      new Signalbox({
        baseUrl: service.url,
        token: async () => {
          const { client } = service;
          const scopes = ['read', 'send', 'decide', 'open'] as const;
          const params = { agentId, environment: 'production', endUser: { id: endUserId }, scopes: [...scopes] };
          const { token } = await client.sessionTokens.create(params);
          watchSecret(token!);
          return token!;
        },
      }),
    next: (...responses) => model.next(...responses.map(respond)),
    nextInTwo(first, rest) {
      const gate = Promise.withResolvers<void>();
      model.next(async (response, request) => {
        await respond({ text: first, end: 'hang' })(response, request);
        await gate.promise;
        // The head was sent.
        response.writeHead = () => response;
        await respond(rest)(response, request);
      });
      return gate.resolve;
    },
    refuseNext: () => model.next(refuse(400)),
    get requests() {
      return model.requests.map(({ body }) => body);
    },
    refunds,
  };
}
