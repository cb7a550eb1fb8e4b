// Nodes of one installation, each in its own process, to be killed and stopped.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Signalbox } from '@signalbox/client';
import { nodeOf } from '../../packages/server/test/support/database-state.ts';
import { programFile } from '../../packages/server/test/support/programs.ts';

const current = await programFile('command');

// How often a call may meet an unavailable node or database: for minutes.
const MAX_RETRIES = 30;

export interface Nodes {
  urls: readonly string[];
  /** The environment of each node. */
  env: NodeJS.ProcessEnv;
  /** An admin key. */
  apiKey: string;
  /** With that key, one for each node. They retry for minutes. */
  clients: readonly Signalbox[];
  /** Kills a node with `kill -9` and starts it again at the same address. */
  kill(index: number): Promise<void>;
  /** Stops a node with SIGTERM, like a process manager, and starts it again at the same address. */
  restart(index: number): Promise<void>;
  /** Stops a node with a signal, and starts another release (the program of its `signalbox` command) at the same address. */
  replace(index: number, command: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Suspends the process and its connections until `proceed`. */
  pause(index: number): void;
  proceed(index: number): void;
  /** The process of a node. */
  pid(index: number): number;
  /** Its id in the database. */
  nodeId(index: number): string;
  /** The index of the node that runs the session; -1 if none does. `databaseUrl`: a direct connection. */
  driverOf(sessionId: string, databaseUrl: string): Promise<number>;
  /** The sum of a metric of the node over all matching labels. */
  metric(index: number, pattern: RegExp): Promise<number>;
  /** The errors that nodes have logged. */
  errors: readonly string[];
  /** Stops all nodes. */
  end(): Promise<void>;
}

interface Node {
  url: string;
  nodeId: string;
  /** The program. */
  command: string;
  child: ChildProcess;
}

/**
 * Starts this many nodes on one database, which may reach tools and receivers on this machine. `command` is the program of the
 * `signalbox` command, if it is not that of this repository.
 */
export async function startNodes(
  count: number,
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
  command: string = current,
): Promise<Nodes> {
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: databaseUrl,
    SIGNALBOX_MASTER_KEY: 'ab'.repeat(32),
    SIGNALBOX_EGRESS_ALLOW: '127.0.0.1',
    SIGNALBOX_LEASE_SECONDS: '2',
    ...settings,
  };
  const errors: string[] = [];
  const start = (program: string, port: string) => startNode(program, env, port, errors);
  const nodes = await Promise.all(Array.from({ length: count }, () => start(command, '0')));
  const made = spawn(process.execPath, [command, 'keys', 'create', '--name', 'test', '--permission', 'admin'], { env });
  const [secret, said] = await Promise.all([text(made.stdout), text(made.stderr)]);
  const apiKey = secret.trim();
  if (!apiKey) throw new Error(`No key was made: ${said}`);
  const urls = nodes.map(({ url }) => url);
  async function replace(index: number, command: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await stopNode(nodes[index]!, signal);
    nodes[index] = await start(command, new URL(urls[index]!).port);
  }
  return {
    urls,
    env,
    apiKey,
    clients: urls.map((baseUrl) => new Signalbox({ apiKey, baseUrl, maxRetries: MAX_RETRIES })),
    kill: (index) => replace(index, nodes[index]!.command, 'SIGKILL'),
    restart: (index) => replace(index, nodes[index]!.command, 'SIGTERM'),
    replace,
    pause: (index) => void nodes[index]!.child.kill('SIGSTOP'),
    proceed: (index) => void nodes[index]!.child.kill('SIGCONT'),
    pid: (index) => nodes[index]!.child.pid!,
    nodeId: (index) => nodes[index]!.nodeId,
    async driverOf(sessionId, databaseUrl) {
      const nodeId = await nodeOf(databaseUrl, sessionId);
      return nodes.findIndex((node) => node.nodeId === nodeId);
    },
    async metric(index, pattern) {
      const lines = (await (await fetch(`${nodes[index]!.url}/metrics`)).text()).split('\n');
      return lines.filter((line) => pattern.test(line)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    },
    errors,
    async end() {
      await Promise.all(nodes.map((node) => stopNode(node, 'SIGKILL')));
    },
  };
}

async function startNode(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
  port: string,
  errors: string[],
): Promise<Node> {
  const child = spawn(process.execPath, [command, 'start', '--port', port], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    printed += part;
  });
  const log = createInterface(child.stdout);
  const started = Promise.withResolvers<Pick<Node, 'url' | 'nodeId'>>();
  log.on('line', (line) => {
    const { level, msg, nodeId, port } = JSON.parse(line) as Record<'level' | 'msg' | 'nodeId', string> & {
      port: number;
    };
    if (level === 'error' || level === 'fatal') errors.push(line);
    if (msg !== 'started') return;
    started.resolve({ url: `http://127.0.0.1:${port}`, nodeId: nodeId });
  });
  child.once('close', () => started.reject(new Error(`The node ended:\n${printed}`)));
  return { ...(await started.promise), command, child };
}

async function stopNode({ child }: Node, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'close');
}

/** How often a test causes a fault (more with `npm run prove`), and the seed of when and where. */
export const faults = {
  times: Number(process.env.SIGNALBOX_FAULTS ?? 1),
  /** A run of `npm run prove`, with more sessions at once. */
  isLong: (process.env.SIGNALBOX_FAULTS ?? process.env.SIGNALBOX_UPGRADES) !== undefined,
  seed: Number(process.env.SIGNALBOX_FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31)),
};
