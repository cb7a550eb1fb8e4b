// The command as a user runs it, and the project that it creates: type-checked, started, and used.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Signalbox } from '@signalbox/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packages, root } from '../../../scripts/packages.ts';
import { freePort } from '../../server/test/support/free-port.ts';
import manifest from '../package.json' with { type: 'json' };
import { nameOf } from '../src/project.ts';
import { providers, servers } from '../src/providers.ts';

const { version } = manifest;
const program = fileURLToPath(new URL('../src/main.ts', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-create-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function create(...args: string[]): Promise<{ status: number; printed: string }> {
  const running = spawn(process.execPath, [program, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [running.stdout, running.stderr]) stream.on('data', (text) => (printed += text));
  const [status] = await once(running, 'close');
  return { status, printed };
}

describe('create-signalbox', () => {
  test('creates the project in a new folder and prints the next steps', async () => {
    const { status, printed } = await create('my app', '--provider', 'anthropic');
    expect(printed).toContain(
      "cd 'my app'\n  npm install\n  # Add your key to .env: ANTHROPIC_API_KEY=…\n  npm run dev\n",
    );
    expect(status).toBe(0);
    const read = (file: string) => readFileSync(join(folder, 'my app', file), 'utf8');
    expect(JSON.parse(read('package.json'))).toMatchObject({ name: 'my-app', private: true });
    expect(read('model.ts')).toBe(`export const model = '${providers.anthropic!.model}';\n`);
    expect(read('.env')).toBe('ANTHROPIC_API_KEY=\nSIGNALBOX_PROVIDER_KEYS=anthropic\n');
    expect(statSync(join(folder, 'my app/.env')).mode & 0o777).toBe(0o600);
    expect(read('.gitignore').split('\n')).toEqual(expect.arrayContaining(['.env', 'data', 'node_modules']));
    expect(read('compose.yaml')).toContain('ANTHROPIC_API_KEY: $' + '{ANTHROPIC_API_KEY:?set it in .env}');
    for (const file of readdirSync(join(folder, 'my app'), { recursive: true, withFileTypes: true })) {
      if (file.isFile())
        expect(readFileSync(join(file.parentPath, file.name), 'utf8')).not.toMatch(/\{\{(?!input|lastToolResult)/);
    }
  });

  test('has a model of a server with its address and the name of its key', async () => {
    const { status, printed } = await create('app', '--provider', 'groq', '--model', "meta/it's");
    expect([status, printed]).toEqual([0, expect.stringContaining('# Add your key to .env: GROQ_API_KEY=…')]);
    const read = (file: string) => readFileSync(join(folder, 'app', file), 'utf8');
    expect(read('model.ts')).toBe(
      `import type { Model } from '@signalbox/client';\n\nexport const model: Model = {\n  provider: 'openai-compatible',\n  model: 'meta/it\\'s',\n  baseUrl: '${servers.groq!.baseUrl}',\n  apiKeySecret: 'GROQ_API_KEY',\n};\n`,
    );
    expect(read('.env')).toBe('GROQ_API_KEY=\n');
    expect(read('README.md')).toContain('signalbox secrets set production GROQ_API_KEY --allowed-host api.groq.com');
    expect((await create('local', '--provider', 'ollama', '--model', 'qwen3')).status).toBe(0);
    expect(readFileSync(join(folder, 'local/.env'), 'utf8')).toBe('');
    expect(readFileSync(join(folder, 'local/model.ts'), 'utf8')).not.toContain('apiKeySecret');
  });

  test.each([
    ['2026', '2026'],
    ['1.5', '1-5'],
    ['no', 'no'],
    ['my.shop_2', 'my-shop_2'],
    ["it's ~/{{x}}`$(id)`", 'it-s'],
  ])('names the Compose project as Compose allows, whatever the folder is called: %j', async (name, expected) => {
    const { status, printed } = await create(name.replace('/', ''), '--provider', 'scripted');
    expect(status, printed).toBe(0);
    const project = parse(readFileSync(join(folder, name.replace('/', ''), 'compose.yaml'), 'utf8')) as {
      name: unknown;
    };
    expect(project.name).toMatch(/^[a-z0-9][a-z0-9_-]*$/);
    expect(project.name).toContain(expected);
    // A shell can run what is printed.
    const step = printed.split('\n').find((line) => line.trim().startsWith('cd '))!;
    await promisify(execFile)('sh', ['-c', step], { cwd: folder });
  });

  test('writes nothing into a folder with files, and names some of them', async () => {
    mkdirSync(join(folder, 'used'));
    writeFileSync(join(folder, 'used/index.html'), 'mine');
    expect(await create('used', '--provider', 'scripted')).toEqual({
      status: 2,
      printed: 'used is not empty: it has index.html. Choose another folder.\n',
    });
    expect(readdirSync(join(folder, 'used'))).toEqual(['index.html']);
  });

  test('takes a folder that has only a repository', async () => {
    mkdirSync(join(folder, '.git'));
    expect((await create('.', '--provider', 'scripted')).status).toBe(0);
  });

  test.each([
    [
      ['a', '--provider', 'grok'],
      /^There is no provider "grok"\. Choose from anthropic, openai, google, scripted, openrouter, groq, /,
    ],
    [['a', '--provider', 'groq'], 'Name a model of groq, such as --model NAME.\n'],
    [['a', '--provider', 'groq', '--model', ' '], '--model names a model of the server that --provider names.\n'],
    [['a', '--provider', 'openai', '--model', 'x'], '--model names a model of the server that --provider names.\n'],
    [
      ['a'],
      'Without a terminal, name the folder and the provider: npm create signalbox my-app -- --provider scripted\n',
    ],
    [['a', 'b', '--provider', 'openai'], 'Name one folder, not 2.\n'],
    [['a', '--provder', 'openai'], /^Unknown option '--provder'/],
  ])('refuses %j with exit status 2', async (args, message) => {
    const { status, printed } = await create(...args);
    expect(printed).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
    expect(status).toBe(2);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('with --packages, everything of Signalbox is installed from the tarballs, which the project keeps', async () => {
    const own = packages().filter(({ name }) => name !== 'create-signalbox');
    const fileOf = (name: string) => `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
    mkdirSync(join(folder, 'packed'));
    const args = ['app', '--provider', 'scripted', '--packages', 'packed'];
    for (const { name } of own.slice(1)) writeFileSync(join(folder, 'packed', fileOf(name)), name);
    expect(await create(...args)).toEqual({
      status: 1,
      printed: expect.stringContaining(`--packages: packed has no ${fileOf(own[0]!.name)}.`),
    });
    writeFileSync(join(folder, 'packed', fileOf(own[0]!.name)), own[0]!.name);
    expect((await create(...args)).status).toBe(0);
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'app/package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    for (const { name } of own) {
      const [address, ...others] = [dependencies[name], devDependencies[name]].filter((one) => one !== undefined);
      expect([address, others], name).toEqual([`file:packages/${fileOf(name)}`, []]);
      expect(readFileSync(join(folder, 'app', address!.slice('file:'.length)), 'utf8')).toBe(name);
    }
    const dockerfile = readFileSync(join(folder, 'app/Dockerfile'), 'utf8');
    expect(dockerfile).toContain('COPY packages /packages\nRUN npm install --global /packages/*.tgz\n');
    expect(dockerfile).toContain('COPY packages ./packages\n');
  });

  test('names the package after the folder, as npm allows', () => {
    expect(['My App', '_x', '.', 'ünïcode', 'a'.repeat(300)].map(nameOf)).toEqual([
      'my-app',
      'x',
      'signalbox-app',
      'n-code',
      'a'.repeat(214),
    ]);
  });
});

describe('a project', () => {
  beforeEach(async () => {
    const { status } = await create('.', '--provider', 'scripted');
    expect(status).toBe(0);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });

  test.each(['scripted', ...Object.keys(providers), 'groq'])('has the right types (%s)', async (provider) => {
    const model = providers[provider]?.model;
    if (model) writeFileSync(join(folder, 'model.ts'), `export const model = '${model}';\n`);
    if (provider in servers) {
      expect((await create('other', '--provider', provider, '--model', 'any')).status).toBe(0);
      cpSync(join(folder, 'other/model.ts'), join(folder, 'model.ts'));
      rmSync(join(folder, 'other'), { recursive: true });
    }
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    await promisify(execFile)(process.execPath, [tsc, '--noEmit', '-p', folder]);
  });

  test('starts with one command, and its chat continues after an approval; the receiver gets the webhooks', {
    timeout: 300_000,
  }, async () => {
    const [signalboxPort, port] = [await freePort(), await freePort()];
    const url = `http://localhost:${port}`;
    const dev = spawn(process.execPath, [join(root, 'node_modules/tsx/dist/cli.mjs'), 'dev.ts'], {
      cwd: folder,
      env: {
        PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
        SIGNALBOX_PORT: `${signalboxPort}`,
        PORT: `${port}`,
        NO_COLOR: '1',
      },
    });
    const shown: string[] = [];
    let printed = '';
    for (const stream of [dev.stdout, dev.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
    }
    const ended = once(dev, 'close');
    try {
      await expect.poll(() => printed, { timeout: 240_000 }).toContain(`Chat on ${url}`);
      expect(await (await fetch(url)).text()).toContain('<div id="root">');
      const { baseUrl, agentId, environment } = await chatOf(url);
      const token = await (await fetch(`${url}/api/token`, { method: 'POST' })).text();
      const client = new Signalbox({ baseUrl, token: async () => token });
      const { sessionId } = await client.sessions.open({ agentId, environment, input: 'Please cancel my order' });
      let text = '';
      const signal = AbortSignal.timeout(120_000);
      for await (const { chunks } of client.sessions.stream(sessionId, {}, { signal })) {
        for (const chunk of chunks) {
          shown.push(JSON.stringify(chunk));
          if (chunk.type === 'message.chunk') text += chunk.delta;
          if (chunk.type === 'approval.requested') await client.approvals.approve(chunk.operationId);
          if (chunk.type === 'tool.call') {
            await client.sessions.sendToolResult(sessionId, {
              toolCallId: chunk.toolCallId,
              output: 'Order 1017 is cancelled.',
            });
          }
        }
        if (text.includes('Is there anything else')) break;
      }
      expect(text).toContain('Order 1017 is cancelled.');
      await expect.poll(() => printed).toContain(`webhook: ${sessionId} completed a turn: endTurn`);
      expect(readFileSync(join(folder, '.env'), 'utf8')).toMatch(
        /^SIGNALBOX_API_KEY=sbk_\w+\nSIGNALBOX_SIGNING_SECRET=whsec_\S+\n$/,
      );

      // An error in a file, and its correction.
      const model = readFileSync(join(folder, 'agent.ts'), 'utf8');
      writeFileSync(join(folder, 'agent.ts'), 'nonsense(');
      await expect.poll(() => printed).toContain('The backend has ended. It starts again when a file changes.');
      writeFileSync(join(folder, 'agent.ts'), model.replace('Keep it short.', 'Be brief.'));
      await expect.poll(() => printed.split(`Chat on ${url}`)).toHaveLength(3);
      const stored = await new Signalbox({ baseUrl, apiKey: secretsOf(folder).SIGNALBOX_API_KEY! }).agents.get(agentId);
      expect([stored.version, stored.instructions]).toEqual([2, expect.stringContaining('Be brief.')]);
      expect(printed.split('is running. Ctrl-C stops it.')).toHaveLength(2);

      // What runs in production: the built page, from the same backend.
      await promisify(execFile)(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build'], {
        cwd: folder,
      });
      const built = spawn(
        process.execPath,
        [join(root, 'node_modules/tsx/dist/cli.mjs'), 'server.ts', '--production'],
        {
          cwd: folder,
          env: { ...secretsOf(folder), SIGNALBOX_URL: baseUrl, PORT: '0' },
        },
      );
      try {
        const address = await firstMatch(built.stdout, /Chat on (\S+)/);
        expect(await (await fetch(address)).text()).toMatch(/src="\/assets\/index-\S+\.js"/);
        const again = (await chatOf(address)).agentId;
        expect(again, 'an agent that has not changed is not created again').toBe(agentId);
        expect((await fetch(`${address}/webhooks`, { method: 'POST', body: '{}' })).status).toBe(401);
      } finally {
        built.kill();
      }
    } catch (error) {
      throw new Error(`The session showed:\n${shown.join('\n')}\nPrinted was:\n${printed}`, { cause: error });
    } finally {
      dev.kill('SIGINT');
      await ended;
    }
  });

  test('stops Signalbox again and names the port if that of the page is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const [signalboxPort, { port }] = [await freePort(), taken.address() as AddressInfo];
    const dev = spawn(process.execPath, [join(root, 'node_modules/tsx/dist/cli.mjs'), 'dev.ts'], {
      cwd: folder,
      env: {
        PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
        SIGNALBOX_PORT: `${signalboxPort}`,
        PORT: `${port}`,
      },
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    let errors = '';
    dev.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    // Its standard error is closed once the service, which inherits it, has ended as well.
    const [code] = await once(dev, 'close');
    taken.close();
    expect([code, errors]).toEqual([1, expect.stringContaining(`Port ${port} is in use.`)]);
    await expect(fetch(`http://127.0.0.1:${signalboxPort}/healthz`)).rejects.toThrow();
  });
});

async function chatOf(address: string) {
  return (await (await fetch(`${address}/api/chat`)).json()) as {
    baseUrl: string;
    agentId: string;
    environment: string;
  };
}

const secretsOf = (project: string) =>
  Object.fromEntries(
    readFileSync(join(project, '.env'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  );

async function firstMatch(output: Readable, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const part of output.iterator({ destroyOnReturn: false })) {
    text += part;
    const found = pattern.exec(text)?.[1];
    if (found) {
      output.resume();
      return found;
    }
  }
  throw new Error(`The program ended and printed only: ${text}`);
}
