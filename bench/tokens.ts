// 1,000 browsers: each opens the stream of its session with a session token, reads what the session has shown, and leaves. The limit is
// the same with the API key. Measured is the CPU time of the service and its database, for each stream.
import { Pool } from 'undici';
import { many } from './fan-out.ts';
import { type Bench, type Benchmark, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { rowOf } from './support/table.ts';

const BROWSERS = 1_000;
const IDLE = '"status":"idle"';

interface Browser {
  sessionId: string;
  token: string;
}

export const tokens: Benchmark = {
  name: 'tokens',
  async run() {
    const bench = await startBench({
      settings: {
        SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000,tokens=1000000',
        SIGNALBOX_MAX_STREAMS_PER_KEY: '0',
      },
    });
    const agentId = await createScriptedAgent(bench);
    const browsers = await many(BROWSERS, () => openBrowser(bench, agentId));
    const pool = new Pool(bench.url, { connections: BROWSERS, pipelining: 1, bodyTimeout: 0 });
    const cost = (credential: (browser: Browser) => string) =>
      processorMs(bench, async () => {
        const streams = await many(BROWSERS, (at) =>
          openStream(pool, browsers[at]!.sessionId, credential(browsers[at]!)),
        );
        for (const close of streams) close();
      });
    const pairs = await measurePairs(
      () => cost(({ token }) => token),
      () => cost(() => bench.adminKey),
    );
    await pool.destroy();
    await bench.stop();
    return [rowOf({ name: 'tokens', unit: 'ms a stream', target: '≤ 1.20' }, pairs)];
  },
};

async function openBrowser(bench: Bench, agentId: string): Promise<Browser> {
  const input = 'Hello';
  const { session } = await bench.call<{ session: { sessionId: string } }>('POST', '/sessions', {
    agentId,
    environment: 'production',
    input,
  });
  const { sessionId } = session;
  const { token } = await bench.call<{ token: string }>('POST', `/sessions/${sessionId}/tokens`, {
    scopes: ['read'],
    expiresInSeconds: 86_400,
  });
  return { sessionId, token };
}

/** Resolves once the stream has shown that the session is idle, with a function that ends it. */
async function openStream(pool: Pool, sessionId: string, credential: string): Promise<() => void> {
  const { body, statusCode } = await pool.request({
    method: 'GET',
    path: `/api/v1/sessions/${sessionId}/stream`,
    headers: { authorization: `Bearer ${credential}` },
  });
  if (statusCode !== 200) throw new Error(`a stream was answered ${statusCode}`);
  // It is ended below.
  body.on('error', () => {});
  let text = '';
  await new Promise<void>((resolve) => {
    body.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.includes(IDLE)) resolve();
    });
  });
  return () => body.destroy();
}

async function processorMs(bench: Bench, act: () => Promise<void>): Promise<number> {
  const before = await bench.usage();
  await act();
  const after = await bench.usage();
  return (after.serviceMs - before.serviceMs + after.databaseMs - before.databaseMs) / BROWSERS;
}
