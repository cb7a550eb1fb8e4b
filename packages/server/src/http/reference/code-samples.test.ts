// The programs are also compiled, by test/snippets.test.ts.
import { Signalbox } from '@signalbox/client';
import { type Route, routes, type SchemaObject } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { bodyExamples } from './body-examples.ts';
import { clientLine, typescriptSample } from './code-samples.ts';
import { responseExample } from './response-examples.ts';

/** It reconnects until its key loses access. */
const endless = 'streamEnvironment';

interface Sent {
  method: string;
  path: string;
  body: unknown;
}

/** Runs the program against a service that gives the route's example; returns its first request and what it logged. */
async function run(name: string, route: Route): Promise<{ sent: Sent; logged: unknown[] }> {
  const requests: Sent[] = [];
  const logged: unknown[] = [];
  const client = new Signalbox({
    apiKey: 'sbk_test',
    baseUrl: 'http://signalbox.test',
    maxRetries: 0,
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input));
      const text = typeof init?.body === 'string' ? init.body : undefined;
      requests.push({ method: init?.method ?? 'GET', path: pathname, body: text ? JSON.parse(text) : undefined });
      if (name === endless && requests.length > 1) return new Response('{"code":"invalid_token"}', { status: 401 });
      return respond(name, route);
    },
  });
  const program = typescriptSample(name, route)
    .replace(/^import .*;\n/gm, '')
    .replace(clientLine, '');
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  const started = new AsyncFunction('client', 'readFile', 'console', program);
  const ended = started(client, async () => new Uint8Array([1]), { log: (value: unknown) => logged.push(value) });
  if (name === endless) await expect(ended).rejects.toMatchObject({ status: 401 });
  else await ended;
  return { sent: requests[0]!, logged };
}

function respond(name: string, route: Route): Response {
  if (route.stream === 'content') return new Response('bytes');
  const example = JSON.stringify(responseExample(name, route));
  if (route.stream === 'export') return new Response(`${example}\n`);
  if (route.stream === 'sse') {
    const ended = example.replace('"status":"idle"', '"status":"completed"');
    return new Response(`id: turn_1:seq_17\nevent: session.chunks\ndata: ${ended}\n\n`, {
      headers: { 'content-type': 'text/event-stream' },
    });
  }
  return new Response(example, { status: route.status, headers: { 'content-type': 'application/json' } });
}

test.each(Object.entries<Route>(routes))(
  'the program for %s sends that request, and reads its example',
  async (name, route) => {
    const { sent, logged } = await run(name, route);
    const { properties = {} } = (route.params ?? {}) as SchemaObject;
    const path = Object.entries(properties).reduce(
      (at, [param, { examples }]) => at.replace(`{${param}}`, String(examples?.[0])),
      route.path,
    );
    expect(sent).toEqual({
      method: route.method,
      path: `/api/v1${path}`,
      body: bodyExamples[name as keyof typeof bodyExamples],
    });
    expect(logged.includes(undefined)).toBe(false);
    if (typescriptSample(name, route).includes('console.log')) expect(logged).not.toEqual([]);
  },
);
