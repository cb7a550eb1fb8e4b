// Files of 8 MiB, 8 at a time, up and down. The limit: a bare Fastify route that writes the same bytes to the same PostgreSQL in the same
// pieces. And the memory of the service while 100 files of 32 MiB are uploaded at once.
import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';
import { type Bench, type Benchmark, measurePairs, startBench, startChild } from './support/harness.ts';
import { type Row, rowOf } from './support/table.ts';

const MIB = 1024 * 1024;
const AT_ONCE = 8;
const FILE_BYTES = 8 * MIB;
const MANY = 100;
const LARGEST_BYTES = 32 * MIB;
const WATCH_EVERY_MS = 100;

export const files: Benchmark = {
  name: 'files',
  async run() {
    const bench = await startBench({ settings: { SIGNALBOX_MAX_FILE_MEGABYTES: '0' } });
    const bare = await startChild('bare-files-process.ts', { env: { DATABASE_URL: bench.databaseUrl } });
    const ours = transfer(`${bench.url}/api/v1/files`, bench.adminKey);
    const limit = transfer(`${bare.hello}/files`, bench.adminKey);
    const up = await measurePairs(ours.up, limit.up);
    const down = await measurePairs(ours.down, limit.down);
    await bare.stop();
    // A key may have a quarter of the node's uploads open.
    const { apiKey } = await bench.call<{ apiKey: { secret: string } }>('POST', '/api_keys', {
      name: 'Other',
      permission: 'write',
    });
    const memory = await memoryOfMany(bench, [ours, transfer(`${bench.url}/api/v1/files`, apiKey.secret)]);
    await bench.stop();
    return [
      rowOf({ name: 'files, up', unit: 'MB/s', target: '≥ 0.60' }, up),
      rowOf({ name: 'files, down', unit: 'MB/s', target: '≥ 0.60' }, down),
      memory,
    ];
  },
};

interface Transfer {
  /** Megabytes per second. */
  up(): Promise<number>;
  down(): Promise<number>;
  send(content: Buffer): Promise<string>;
}

function transfer(base: string, key: string): Transfer {
  const { origin, pathname } = new URL(base);
  const pool = new Pool(origin, { connections: MANY });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/octet-stream' };
  const content = randomBytes(FILE_BYTES);
  let sent: string[] = [];

  async function send(body: Buffer): Promise<string> {
    const path = `${pathname}?environment=production`;
    const response = await pool.request({ method: 'POST', path, headers, body });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`an upload: ${response.statusCode} ${text}`);
    return (JSON.parse(text) as { file: { fileId: string } }).file.fileId;
  }

  async function receive(fileId: string): Promise<void> {
    const response = await pool.request({ method: 'GET', path: `${pathname}/${fileId}/content`, headers });
    let bytes = 0;
    for await (const chunk of response.body) bytes += (chunk as Buffer).length;
    if (bytes !== FILE_BYTES) throw new Error(`a download has ${bytes} bytes`);
  }

  async function rateOf(act: (index: number) => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => act(index)));
    return (AT_ONCE * FILE_BYTES) / 1e6 / ((performance.now() - began) / 1000);
  }

  return {
    send,
    up: () =>
      rateOf(async (index) => {
        sent[index] = await send(content);
      }),
    async down() {
      if (sent.length < AT_ONCE) sent = await Promise.all(Array.from({ length: AT_ONCE }, () => send(content)));
      return rateOf((index) => receive(sent[index]!));
    },
  };
}

async function memoryOfMany(bench: Bench, senders: readonly Transfer[]): Promise<Row> {
  const content = randomBytes(LARGEST_BYTES);
  const before = (await bench.usage()).residentMb;
  let most = before;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      most = Math.max(most, (await bench.usage()).residentMb);
      await new Promise<void>((resolve) => setTimeout(resolve, WATCH_EVERY_MS));
    }
  })();
  await Promise.all(Array.from({ length: MANY }, (_, index) => senders[index % senders.length]!.send(content)));
  isOver = true;
  await watching;
  const name = `files, memory of ${MANY} at once`;
  return rowOf({ name, unit: 'MB', target: '≤ 256 MB' }, [{ ours: most - before }]);
}
