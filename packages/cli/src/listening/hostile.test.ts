// A service that is compromised, and a receiver that is: what they can do to the machine on which `signalbox listen` runs.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { runCli } from '../../test/support/cli.ts';

const EVIL = '\u001b]0;owned\u0007\u009b2J\u202e';

let servers: Server[] = [];
afterEach(() => {
  for (const server of servers) server.close().closeAllConnections();
  servers = [];
});

async function serve(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function envelope(seq: number) {
  const chunk = { type: `tool.call${EVIL}`, name: EVIL, turn: 1, seq };
  return {
    event: 'session.chunks',
    environment: 'staging',
    agentId: EVIL,
    sessionId: `ses_${EVIL}`,
    cursor: `turn_1:seq_${seq}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    url: 'http://169.254.169.254/',
    chunks: [chunk],
  };
}

/** Streams two envelopes until `done`, and then refuses the key. */
function hostileService(done: Promise<unknown>): Promise<string> {
  let isFirst = true;
  return serve(async (_request, response) => {
    if (!isFirst) {
      const problem = { status: 401, code: 'invalid_api_key', title: EVIL, detail: EVIL, requestId: EVIL };
      response.writeHead(401, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
      return;
    }
    isFirst = false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const sent of [envelope(1), envelope(2)]) {
      response.write(`id: ${sent.timestamp}\nevent: session.chunks\ndata: ${JSON.stringify(sent)}\n\n`);
    }
    await done;
    response.end();
  });
}

const listen = (url: string, ...more: string[]) =>
  runCli(['listen', '--environment', 'staging', ...more], {
    env: { SIGNALBOX_URL: url, SIGNALBOX_API_KEY: 'sbk_test', NO_COLOR: '1' },
    columns: 100,
  });

test.each([[[]], [['--json']]])('what a service sends does not control the terminal: %j', async (more) => {
  const { code, stdout, stderr } = await listen(await hostileService(Promise.resolve()), ...more);
  expect(code).toBe(1);
  expect(stdout.match(/tool\.call/g)).toHaveLength(2);
  expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u);
  if (more.length > 0) expect(JSON.parse(stdout.split('\n')[0]!)).toEqual(envelope(1));
});

test('deliveries go to the given URL and nowhere else, whatever the service sends and the receiver responds', async () => {
  const elsewhere: string[] = [];
  const other = await serve((request, response) => {
    elsewhere.push(request.url!);
    response.end();
  });
  const received: IncomingMessage[] = [];
  const both = Promise.withResolvers<void>();
  const receiver = await serve((request, response) => {
    received.push(request);
    // A delivery that gets 410 is not sent again.
    response.writeHead(received.length === 1 ? 200 : 410, { location: other, refresh: `0; url=${other}` }).end(EVIL);
    if (received.length === 2) both.resolve();
  });
  const { stdout } = await listen(await hostileService(both.promise), '--forward-to', `${receiver}/hook`);
  expect(received.map(({ method, url }) => `${method} ${url}`)).toEqual(['POST /hook', 'POST /hook']);
  for (const { headers } of received) {
    expect(headers).not.toHaveProperty('authorization');
  }
  expect(elsewhere).toEqual([]);
  expect(stdout).not.toMatch(/[^\P{Cc}\n]/u);
});
