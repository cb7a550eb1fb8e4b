// `npm run bench -- --against NAME,…`: Signalbox and other programs in one run, in turn, with the same client and a model that
// answers at once.
import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { type Bench, type Child, startBench, startChild } from '../support/harness.ts';
import { createScriptedAgent } from '../support/session-client.ts';
import { install } from './install.ts';
import { sampleOf, type Target } from './measure.ts';
import { type Peer, peers } from './peers.ts';
import { formatRuns, type Run } from './table.ts';

const ROUNDS = 3;
// Until a program has also done what it puts off. LangGraph's writes its files 3 s after its last work.
const SETTLE_MS = 4_000;

export class UnknownPeer extends Error {}

/** The peers of a list like `mastra,eve`. Throws if it has a name that is not known. */
export function parsePeers(list: string): Peer[] {
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !peers.some((peer) => peer.name === name));
  if (unknown.length > 0) {
    const known = peers.map(({ name }) => name).join(', ');
    throw new UnknownPeer(`--against: no program "${unknown.join('", "')}". There are ${known}.`);
  }
  return peers.filter(({ name }) => names.includes(name));
}

/** Returns the table. A peer that can't be installed or started has a row that says so. */
export async function runAgainst(wanted: readonly Peer[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-against-'));
  const bench = await startBench();
  const started: Child[] = [];
  try {
    const runs: Run[] = [await signalbox(bench)];
    for (const peer of wanted) {
      const version = Object.values(peer.packages)[0]!;
      console.error(`${peer.name} ${version} …`);
      try {
        const folder = await install(peer);
        const child = await startChild(pathToFileURL(join(folder, 'program.mjs')).href, {
          env: {
            NODE_ENV: 'production',
            LOG_LEVEL: 'error',
            DATA_DIR: join(directory, peer.name),
            DATABASE_URL: await createDatabase(bench.databaseUrl, peer.name),
          },
          logFile: join(folder, 'program.log'),
        });
        started.push(child);
        runs.push(...peer.targets.map((target) => ({ version, target, url: child.hello, samples: [] })));
      } catch (error) {
        const problem = error instanceof Error ? error.message : String(error);
        runs.push(...peer.targets.map((target) => ({ version, target, problem, samples: [] })));
      }
    }
    for (let round = 0; round <= ROUNDS; round += 1) {
      const load = `load average ${loadavg()[0]!.toFixed(1)}`;
      console.error(round === 0 ? `Warming up, ${load} …` : `Round ${round} of ${ROUNDS}, ${load} …`);
      for (const { url, target, samples } of runs) {
        if (url === undefined) continue;
        const sample = await sampleOf(url, target);
        if (round > 0) samples.push(sample);
        await sleep(SETTLE_MS);
      }
    }
    return formatRuns(runs);
  } finally {
    for (const child of started) await child.stop();
    await bench.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function signalbox(bench: Bench): Promise<Run> {
  const agentId = await createScriptedAgent(bench);
  const target: Target = {
    title: 'Signalbox',
    keeps: 'every event, and each delta before a reader gets it, in PostgreSQL',
    open: async () => ({
      method: 'POST',
      path: '/api/v1/sessions',
      headers: { authorization: `Bearer ${bench.adminKey}`, accept: 'text/event-stream' },
      body: { agentId, environment: 'production', input: 'Hello' },
    }),
    delta: '"message.chunk"',
  };
  return { version: 'this commit', target, url: bench.url, samples: [] };
}

/** In the PostgreSQL of Signalbox's service, for peers that use one. */
async function createDatabase(databaseUrl: string, name: string): Promise<string> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}
