// The end of an outage: 500 sessions on two nodes wait for a model that refuses calls. When it responds again, a person retries.
//
// `back, a person` is the time from then until the person's turn has its response, `back, 500 parked` until all sessions have
// responded. Both contain the rest of the second in which a node does not try the model again.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { chatCompletions } from '../packages/server/test/support/openai-server.ts';
import { refuse, startProviderServer } from '../packages/server/test/support/provider-server.ts';
import { many } from './fan-out.ts';
import { type Benchmark, startBench, startChild } from './support/harness.ts';
import { rowOf } from './support/table.ts';

const SESSIONS = 500;
const POLL_MS = 20;

export const back: Benchmark = {
  name: 'back',
  async run() {
    const egress = { SIGNALBOX_EGRESS_ALLOW: '127.0.0.1', SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000' };
    const bench = await startBench({ settings: egress });
    const other = await startChild('service-process.ts', {
      env: {
        DATABASE_URL: bench.databaseUrl,
        SIGNALBOX_PORT: '0',
        SIGNALBOX_MASTER_KEY: bench.masterKey,
        SIGNALBOX_LOG_LEVEL: 'error',
        ...egress,
      },
    });
    let isDown = true;
    const answer = chatCompletions.respond({ parts: [{ text: ['Here ', 'again.'] }] });
    const provider = await startProviderServer('/v1', (response, request) =>
      (isDown ? refuse(503) : answer)(response, request),
    );
    const createAgent = async (name: string, limits: object) => {
      const model = { provider: 'openai-compatible', model: 'm', baseUrl: provider.url };
      return (await bench.call<{ agent: { agentId: string } }>('POST', '/agents', { name, model, limits })).agent
        .agentId;
    };
    const open = async (agentId: string) => {
      const body = { agentId, environment: 'production', input: 'go' };
      return (await bench.call<{ session: { sessionId: string } }>('POST', '/sessions', body)).session.sessionId;
    };
    const database = new pg.Client(bench.databaseUrl);
    await database.connect();
    const until = async (condition: string) => {
      while (!(await database.query(`select ${condition} as ok from sessions`)).rows[0].ok) await sleep(POLL_MS);
    };
    const patient = await createAgent('Patient', {});
    await many(SESSIONS, () => open(patient));
    await until(`count(*) filter (where status = 'waiting') = ${SESSIONS}`);
    const person = await open(await createAgent('Impatient', { modelOutageSeconds: 0 }));
    await until(`count(*) filter (where error is not null) = 1`);

    isDown = false;
    const begin = performance.now();
    await bench.call('POST', `/sessions/${person}/retry`, {});
    await until(
      `count(*) filter (where agent_id = (select agent_id from sessions group by 1 having count(*) = 1) and steps > 0) = 1`,
    );
    const personMs = performance.now() - begin;
    await until(`count(*) filter (where status = 'idle') = ${SESSIONS + 1}`);
    const allMs = performance.now() - begin;
    await database.end();
    await other.stop();
    await bench.stop();
    await provider.close();
    return [
      rowOf({ name: 'back, a person', unit: 'ms', target: '≤ 2 s' }, [{ ours: personMs }]),
      rowOf({ name: `back, ${SESSIONS} parked`, unit: 'ms', target: '≤ 30 s' }, [{ ours: allMs }]),
    ];
  },
};
