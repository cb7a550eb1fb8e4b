// Nodes of one installation as processes of their own, to be killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { TestDatabase } from '../../../server/test/support/postgres.ts';

const command = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export interface Nodes {
  urls: readonly string[];
  /** Of an admin key. */
  apiKey: string;
  /** `kill -9` of one, which is then started again at the same address. */
  kill(index: number): Promise<void>;
  /** Ends all of them. */
  end(): Promise<void>;
}

interface Node {
  url: string;
  child: ChildProcess;
}

/** So many nodes on one database, which reach tools and receivers on this machine. */
export async function startNodes(count: number, database: TestDatabase): Promise<Nodes> {
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: database.url,
    SIGNALBOX_MASTER_KEY: 'ab'.repeat(32),
    SIGNALBOX_EGRESS_ALLOW: '127.0.0.1',
    SIGNALBOX_LEASE_SECONDS: '2',
    SIGNALBOX_LOG_LEVEL: 'silent',
  };
  const nodes = await Promise.all(Array.from({ length: count }, () => startNode(env, '0')));
  const made = spawn(process.execPath, [command, 'keys', 'create', '--name', 'test', '--permission', 'admin'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let apiKey = '';
  for await (const text of made.stdout.setEncoding('utf8')) apiKey += text;
  return {
    urls: nodes.map(({ url }) => url),
    apiKey: apiKey.trim(),
    async kill(index) {
      const { url } = nodes[index]!;
      await killNode(nodes[index]!);
      nodes[index] = await startNode(env, new URL(url).port);
    },
    async end() {
      await Promise.all(nodes.map(killNode));
    },
  };
}

async function startNode(env: Record<string, string | undefined>, port: string): Promise<Node> {
  const child = spawn(process.execPath, [command, 'start', '--port', port], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let printed = '';
  child.stderr.setEncoding('utf8');
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (text: string) => {
      printed += text;
      const found = /(http:\S+)\/api\/v1/.exec(printed);
      if (found) resolve(found[1]!);
    });
    child.once('close', () => reject(new Error(`The node ended:\n${printed}`)));
  });
  return { url, child };
}

async function killNode({ child }: Node): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

/** Numbers that the same seed gives again. */
export function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** How often a test kills: more where `npm run prove` asks for it. And the seed of when and whom. */
export const killing = {
  times: Number(process.env.SIGNALBOX_KILLS ?? 4),
  seed: Number(process.env.SIGNALBOX_KILL_SEED ?? Math.floor(Math.random() * 2 ** 32)),
};
