// `npm run bench` runs all benchmarks, `npm run bench -- NAME …` some. `--parked N` parks another number than a million sessions.
// `--profile` says where the processor time goes. `--against NAME,…` measures other programs instead.
// Speed is not a test: it fails only if something breaks.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parsePeers, runAgainst, UnknownPeer } from './against/against.ts';
import { apiRead } from './api-read.ts';
import { apiWrite } from './api-write.ts';
import { append } from './append.ts';
import { fanOut } from './fan-out.ts';
import { files } from './files.ts';
import { firstToken } from './first-token.ts';
import { floor } from './floor.ts';
import { forks } from './forks.ts';
import { growth } from './growth.ts';
import { lists } from './lists.ts';
import { nodes } from './nodes.ts';
import { parked } from './parked.ts';
import { sessions } from './sessions.ts';
import { slowReceiver } from './slow-receiver.ts';
import { start } from './start.ts';
import { profiled } from './support/profile.ts';
import { formatTable, type Row } from './support/table.ts';
import { tokens } from './tokens.ts';
import { twoNodes } from './two-nodes.ts';
import { webhookLatency } from './webhook-latency.ts';
import { webhooks } from './webhooks.ts';

const benchmarks = [
  apiRead,
  apiWrite,
  append,
  firstToken,
  sessions,
  floor,
  webhooks,
  webhookLatency,
  slowReceiver,
  fanOut,
  tokens,
  twoNodes,
  nodes,
  parked,
  growth,
  forks,
  lists,
  files,
  start,
];
const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: {
    parked: { type: 'string', default: '1000000' },
    profile: { type: 'boolean', default: false },
    against: { type: 'string' },
  },
});
if (values.against !== undefined) {
  try {
    console.log(await runAgainst(parsePeers(values.against)));
    process.exit();
  } catch (error) {
    console.error(error instanceof UnknownPeer ? error.message : error);
    process.exit(1);
  }
}
const options = { parkedSessions: Number(values.parked) };
const unknown = wanted.filter((name) => !benchmarks.some((benchmark) => benchmark.name === name));
if (unknown.length > 0) {
  console.error(`No benchmark ${unknown.join(', ')}. There are ${benchmarks.map(({ name }) => name).join(', ')}.`);
  process.exit(1);
}

const rows: Row[] = [];
for (const { name, run } of benchmarks) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.error(`${name} …`);
  rows.push(...(values.profile ? await profiled(name, () => run(options)) : await run(options)));
}
console.log(formatTable(rows));
await writeFile(new URL('results.json', import.meta.url), `${JSON.stringify({ rows }, undefined, 2)}\n`);
// Connections that are kept alive would keep the process running.
process.exit();
