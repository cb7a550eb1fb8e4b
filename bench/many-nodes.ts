// What more nodes cost: the same sessions, whose model streams as a real one does, run by one, two, four and eight nodes. Each has a reader
// on the node after its own, so with one node on the same. In total for each response: the processor time of all nodes, beside that of
// one, and of PostgreSQL. What the nodes take without any session, measured before, is not in it.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Bench, type Benchmark, type Child, startBench, startChild } from './support/harness.ts';
import { IDLE } from './support/session-client.ts';
import { DELTAS, INTERVAL_MS } from './support/streamed-model.ts';
import { type Row, rowOf } from './support/table.ts';

const NODES = [1, 2, 4, 8];
const SESSIONS = 64;
const SAMPLES = 2;
const SAMPLE_MS = DELTAS * INTERVAL_MS;
const IDLE_MS = 6_000;
const LIMITS = {
  SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000',
  SIGNALBOX_MAX_STREAMS_PER_KEY: '0',
  SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
};

/** Milliseconds of processor time. */
interface Cost {
  nodes: number;
  database: number;
}

export const manyNodes: Benchmark = {
  name: 'many-nodes',
  async run() {
    const rows: Row[] = [];
    let one: Cost[] | undefined;
    for (const count of NODES) {
      const { idle, samples } = await measure(count);
      one ??= samples;
      const name = `many-nodes, ${count}`;
      const row = (what: keyof Cost) =>
        rowOf(
          {
            name: `${name}, ${what === 'nodes' ? 'nodes together' : 'PostgreSQL'}`,
            unit: 'ms a response',
            target: '–',
          },
          samples.map((sample, at) => ({ ours: sample[what], limit: one![at]![what] })),
        );
      const unit = '% of a core';
      rows.push(
        row('nodes'),
        row('database'),
        rowOf({ name: `${name}, each idle`, unit, target: '–' }, [{ ours: idle.nodes / count / 10 }]),
        rowOf({ name: `${name}, PostgreSQL idle`, unit, target: '–' }, [{ ours: idle.database / 10 }]),
      );
    }
    return rows;
  },
};

async function measure(count: number): Promise<{ idle: Cost; samples: Cost[] }> {
  // It has the database, and runs no session.
  const bench = await startBench({ roles: 'api', settings: LIMITS });
  const nodes: Child[] = [];
  for (let at = 0; at < count; at += 1) nodes.push(await startNode(bench));
  const model = await startChild('model-process.ts');
  const config = { provider: 'openai-compatible', model: 'streamed', baseUrl: model.hello };
  const { agent } = await bench.call<{ agent: { agentId: string } }>('POST', '/agents', {
    name: 'Streamed',
    model: config,
  });
  const look = () => costOf(bench, nodes);
  await sleep(IDLE_MS);
  const before = await look();
  await sleep(IDLE_MS);
  const idle = perSecond(before, await look(), IDLE_MS);
  const load = startLoad(bench, agent.agentId, nodes);
  await sleep(2 * SAMPLE_MS);
  const samples: Cost[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const [from, responses] = [await look(), load.responses()];
    await sleep(SAMPLE_MS);
    const cost = perSecond(from, await look(), SAMPLE_MS);
    const each = (load.responses() - responses) / (SAMPLE_MS / 1000);
    samples.push({ nodes: (cost.nodes - idle.nodes) / each, database: (cost.database - idle.database) / each });
    console.error(`  ${count} nodes: ${each.toFixed(1)} responses/s`);
  }
  await load.stop();
  for (const child of [model, ...nodes]) await child.stop();
  await bench.stop();
  return { idle, samples };
}

function startNode(bench: Bench): Promise<Child> {
  return startChild('service-process.ts', {
    env: {
      ...LIMITS,
      DATABASE_URL: bench.databaseUrl,
      SIGNALBOX_PORT: '0',
      SIGNALBOX_MASTER_KEY: bench.masterKey,
      // The embedded PostgreSQL has room for 100.
      SIGNALBOX_DATABASE_CONNECTIONS: '5',
      SIGNALBOX_LOG_LEVEL: 'error',
    },
  });
}

async function costOf(bench: Bench, nodes: readonly Child[]): Promise<Cost> {
  const used = await Promise.all(nodes.map((node) => node.usage()));
  return {
    nodes: used.reduce((sum, { serviceMs }) => sum + serviceMs, 0),
    database: (await bench.usage()).databaseMs,
  };
}

function perSecond(from: Cost, to: Cost, ms: number): Cost {
  return {
    nodes: ((to.nodes - from.nodes) / ms) * 1000,
    database: ((to.database - from.database) / ms) * 1000,
  };
}

/** Loops that each open one session after another, and read it on the next node. `responses` counts parts of them too. */
function startLoad(bench: Bench, agentId: string, nodes: readonly Child[]) {
  const pools = nodes.map(({ hello }) => new Pool(hello, { connections: 2 * SESSIONS, bodyTimeout: 0 }));
  const authorization = `Bearer ${bench.adminKey}`;
  const body = JSON.stringify({ agentId, environment: 'production', input: 'Hello' });
  let isStopping = false;
  let deltas = 0;
  async function loop(at: number): Promise<void> {
    const [runs, reads] = [pools[at % pools.length]!, pools[(at + 1) % pools.length]!];
    await sleep((at * SAMPLE_MS) / SESSIONS);
    while (!isStopping) {
      const headers = { authorization, 'content-type': 'application/json' };
      const opened = await runs.request({ method: 'POST', path: '/api/v1/sessions', headers, body });
      const { session } = (await opened.body.json()) as { session: { sessionId: string } };
      const stream = await reads.request({
        method: 'GET',
        path: `/api/v1/sessions/${session.sessionId}/stream`,
        headers: { authorization, accept: 'text/event-stream' },
      });
      if (stream.statusCode !== 200) throw new Error(`a stream was answered ${stream.statusCode}`);
      for await (const part of stream.body.setEncoding('utf8')) {
        deltas += part.split('"delta":"').length - 1;
        if (part.includes(IDLE)) break;
      }
    }
  }
  const loops = Array.from({ length: SESSIONS }, (_, at) => loop(at));
  return {
    responses: () => deltas / DELTAS,
    async stop() {
      isStopping = true;
      await Promise.all(loops);
      await Promise.all(pools.map((pool) => pool.destroy()));
    },
  };
}
