// Load balancers as Debian packages them, in front of two nodes, each configured as in docs/operations/load-balancers.md.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../packages/server/test/support/free-port.ts';

export interface Balancer {
  url: string;
  stop(): Promise<void>;
}

interface Kind {
  command: string;
  /** The command that runs it in the foreground with this file. */
  args(file: string, directory: string): string[];
  config(port: number, nodes: readonly string[], directory: string): string;
}

/** Debian's configuration without the parts for its daemon. */
const haproxy = (lines: string): Kind => ({
  command: 'haproxy',
  args: (file) => ['-db', '-f', file],
  config: (port, nodes) => `
defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend all
  bind 127.0.0.1:${port}
  default_backend nodes
backend nodes
${lines}
${nodes.map((node, index) => `  server n${index} ${node} check`).join('\n')}
`,
});

const nginx = (upstream: string, location: string): Kind => ({
  command: 'nginx',
  args: (file, directory) => ['-p', directory, '-e', join(directory, 'error.log'), '-c', file, '-g', 'daemon off;'],
  config: (port, nodes, directory) => `
worker_processes 1;
pid ${directory}/nginx.pid;
events { worker_connections 768; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${directory}/${name};`).join('\n  ')}
  upstream nodes {
    ${nodes.map((node) => `server ${node};`).join(' ')}
    ${upstream}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://nodes;
      ${location}
    }
  }
}
`,
});

const forwarded = `proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header Host $host;`;

export const balancers: Readonly<Record<string, Kind>> = {
  HAProxy: haproxy(`  option httpchk GET /readyz
  option redispatch
  option forwardfor
  timeout check 5s
  default-server inter 1s fall 2 rise 2`),
  nginx: nginx('', forwarded),
  'nginx that keeps connections': nginx(
    'keepalive 32;',
    `${forwarded}\n      proxy_http_version 1.1;\n      proxy_set_header Connection "";`,
  ),
};

export function isInstalled({ command }: Kind): boolean {
  return spawnSync(command, ['-v']).error === undefined;
}

/** `nodes` are URLs. */
export async function startBalancer(kind: Kind, nodes: readonly string[]): Promise<Balancer> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-balancer-'));
  const port = await freePort();
  const file = join(directory, 'config');
  const hosts = nodes.map((node) => new URL(node).host);
  await writeFile(file, kind.config(port, hosts, directory));
  const child = spawn(kind.command, kind.args(file, directory), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    said += part;
  });
  const ended = once(child, 'close');
  const url = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(`${url}/readyz`)
      .then(({ ok }) => ok)
      .catch(() => false))
  ) {
    if (child.exitCode !== null) throw new Error(`${kind.command} ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
