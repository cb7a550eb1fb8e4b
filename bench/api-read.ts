// A list of 20 agents read over 64 connections; the key is checked on every request and nothing is cached.
import { Pool } from 'undici';
import { parseId } from '../packages/server/src/lib/ids.ts';
import { type Benchmark, measurePairs, ratePerSecond, startBench, startChild } from './support/harness.ts';
import { rowOf } from './support/table.ts';

const CONNECTIONS = 64;
const AGENTS = 20;

export const apiRead: Benchmark = {
  name: 'api-read',
  async run() {
    const bench = await startBench();
    for (let at = 0; at < AGENTS; at += 1) {
      await bench.call('POST', '/agents', { name: `Agent ${at}`, model: 'scripted/echo', instructions: 'Be brief.' });
    }
    const body = JSON.stringify(await bench.call('GET', '/agents'));
    const bare = await startChild('bare-process.ts', {
      env: {
        DATABASE_URL: bench.databaseUrl,
        ORGANIZATION_ID: parseId('org', bench.organizationId)!,
        KEY_ID: parseId('key', bench.keyId)!,
        BODY: body,
      },
    });

    function reader(origin: string, path: string): () => Promise<number> {
      const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
      const headers = { authorization: `Bearer ${bench.adminKey}` };
      return () =>
        ratePerSecond(CONNECTIONS, async () => {
          const response = await pool.request({ method: 'GET', path, headers });
          const text = await response.body.text();
          if (text !== body) throw new Error(`${origin}${path} answered ${response.statusCode} and something else`);
        });
    }

    const pairs = await measurePairs(reader(bench.url, '/api/v1/agents'), reader(bare.hello, '/agents'));
    await bare.stop();
    await bench.stop();
    return [rowOf({ name: 'api-read', unit: 'requests/s', target: '≥ 0.70' }, pairs)];
  },
};
