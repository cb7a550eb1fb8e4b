// 5,000 streams on one node, five for each of 1,000 sessions whose models yield a word per second: 1,000 chunks per second.
//
// `fan-out` is the time from a chunk's timestamp, set just before its commit, until the last of its readers has it; all readers are
// in this process. `fan-out-memory` is how much the service's memory grows for each stream after the first thousand.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Bench, type Benchmark, startBench } from './support/harness.ts';
import { quantile, rowOf } from './support/table.ts';

const SESSIONS = 1_000;
const READERS = 5;
/** Sessions whose streams are open before the memory of the others is measured. */
const FIRST = 200;
const WORD_MS = 1_000;
// Longer than the benchmark runs.
const WORDS = 300;
const SAMPLES = 5;
const SAMPLE_MS = 4_000;
const SETTLE_MS = 3_000;
const OPENING_AT_ONCE = 20;

export const fanOut: Benchmark = {
  name: 'fan-out',
  async run() {
    const bench = await startBench({ settings: { SIGNALBOX_RATE_LIMITS: 'reads=1000000,writes=1000000' } });
    const agentId = await createTalker(bench);
    const sessionIds = await many(SESSIONS, async () => {
      const { session } = await bench.call<{ session: { sessionId: string } }>('POST', '/sessions', {
        agentId,
        environment: 'production',
      });
      return session.sessionId;
    });
    const taken: number[] = [];
    const pool = new Pool(bench.url, { connections: SESSIONS * READERS, pipelining: 1, bodyTimeout: 0 });
    const read = (ids: readonly string[]) =>
      many(ids.length, (at) => readStreams(pool, bench.adminKey, ids[at]!, READERS, (ms) => taken.push(ms)));
    async function residentMb(): Promise<number> {
      await sleep(SETTLE_MS);
      return (await bench.usage()).residentMb;
    }
    // The first ones also grow what all streams share: the young generation of the heap, up to 50 MB.
    await read(sessionIds.slice(0, FIRST));
    const before = await residentMb();
    await read(sessionIds.slice(FIRST));
    const kilobytes = (((await residentMb()) - before) * 1000) / ((SESSIONS - FIRST) * READERS);

    await many(SESSIONS, (at) => bench.call('POST', `/sessions/${sessionIds[at]}/messages`, { content: 'Go on' }));
    await sleep(SETTLE_MS);
    const samples: { ours: number }[] = [];
    for (let sample = 0; sample < SAMPLES; sample += 1) {
      taken.length = 0;
      await sleep(SAMPLE_MS);
      console.error(`  ${Math.round((taken.length / SAMPLE_MS) * 1000)} chunks/s`);
      samples.push({ ours: quantile(taken, 0.99) });
    }
    await pool.destroy();
    await bench.stop();
    return [
      rowOf({ name: 'fan-out', unit: 'ms, p99', target: '≤ 100 ms' }, samples),
      rowOf({ name: 'fan-out-memory', unit: 'KB a stream', target: '≤ 18 KB' }, [{ ours: kilobytes }]),
    ];
  },
};

/** Creates an agent whose model yields a word per second. */
export async function createTalker(bench: Bench): Promise<string> {
  const text = Array.from({ length: WORDS }, (_, at) => `word${at}`).join(' ');
  const { agent } = await bench.call<{ agent: { agentId: string } }>('POST', '/agents', {
    name: 'Talker',
    model: { provider: 'scripted', model: 'slow', settings: { script: [{ text, tokenDelayMs: WORD_MS }] } },
  });
  return agent.agentId;
}

/** Opens streams of one session; `heard` is called with each chunk of text when the last stream has it. */
export async function readStreams(
  pool: Pool,
  key: string,
  sessionId: string,
  count: number,
  heard: (ms: number) => void,
): Promise<void> {
  const seen = new Map<string, number>();
  const take = (text: string) => {
    for (const [, cursor = '', timestamp = ''] of text.matchAll(
      /"cursor":"([^"]+)","timestamp":"([^"]+)","chunks":\[\{"type":"message.chunk"/g,
    )) {
      const readers = (seen.get(cursor) ?? 0) + 1;
      seen.set(cursor, readers);
      if (readers < count) continue;
      seen.delete(cursor);
      heard(Date.now() - Date.parse(timestamp));
    }
  };
  for (let reader = 0; reader < count; reader += 1) {
    const { body, statusCode } = await pool.request({
      method: 'GET',
      path: `/api/v1/sessions/${sessionId}/stream`,
      headers: { authorization: `Bearer ${key}` },
    });
    if (statusCode !== 200) throw new Error(`a stream was answered ${statusCode}`);
    body.setEncoding('utf8').on('data', take);
    // The benchmark ends it.
    body.on('error', () => {});
  }
}

/** This many calls, a few at a time. */
export async function many<T>(count: number, act: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: OPENING_AT_ONCE }, async () => {
      for (let at = next++; at < count; at = next++) results[at] = await act(at);
    }),
  );
  return results;
}
