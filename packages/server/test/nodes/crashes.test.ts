// A step that kills every process that runs it (node/claims/crashes.ts): its turn fails before it kills all nodes, and no other
// session is affected.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import type { AskModel } from '../../src/models/model/model.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import { programFile } from '../support/programs.ts';
import { startTestService } from '../support/service.ts';
import { answering, createWorld, hanging, httpTool, is, never, outline, type World } from '../support/session-world.ts';

const MASTER_KEY = randomBytes(32).toString('hex');
const idempotent = httpTool('poison', { idempotent: true });
const callsPoison = answering([{ calls: [['poison', {}]] }, { text: 'done' }]);

describe('with nodes', () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    for (const node of gone.splice(0)) node.release();
    await world.close();
  });
  const gone: HaltingNode[] = [];

  /** A node whose process is gone as soon as `begun` resolves. */
  async function dies(options: { ask?: AskModel; run?: RunTool }, begun: Promise<unknown>): Promise<void> {
    const node = haltingAt(await world.anotherNode(), /^select 'gone'$/, 'before');
    gone.push(node);
    const { nodeId } = await world.work({ platform: node.platform, ...options });
    await begun;
    void node.platform.db.query(sql`select 'gone'`).catch(() => {});
    await node.halted;
    await world.platform.db.execute(sql`
      update nodes set lease_expires_at = now() - interval '1 minute' where node_id = ${nodeId}`);
  }

  async function diesInTool(): Promise<void> {
    const begun = Promise.withResolvers<void>();
    await dies({ ask: callsPoison, run: beginsAndHangs(begun) }, begun.promise);
  }

  async function diesInModel(): Promise<void> {
    const begun = Promise.withResolvers<void>();
    await dies({ ask: hanging('', begun.resolve) }, begun.promise);
  }

  const beginsAndHangs =
    (begun: PromiseWithResolvers<void>): RunTool =>
    (_, signal) => {
      begun.resolve();
      return never(signal);
    };

  const crashesOf = async () =>
    (await world.platform.db.query<{ crashes: number }>(sql`select crashes from sessions`)).map(
      ({ crashes }) => crashes,
    );

  test.each([
    ['a tool call', diesInTool],
    ['a model call', diesInModel],
  ])('%s that killed three nodes is not run again: its turn fails with the reason', async (_, die) => {
    const sessionId = await world.open(await world.agent([idempotent]));
    for (let times = 0; times < 3; times++) await die();
    const runs: string[] = [];
    await world.work({
      ask: answering([{ text: 'never' }], () => runs.push('model')),
      run: async () => ({ output: runs.push('tool') }),
    });
    const chunks = await world.until(sessionId, is('idle'));
    expect(runs).toEqual([]);
    expect(outline(chunks).slice(-2)).toEqual(['turn.completed error', 'idle']);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session.error).toEqual({
      code: 'step_crashed',
      message: 'The service crashed 3 times while running this step, so the turn was ended.',
    });
  });

  test('a node that lost its session and is alive has not crashed: living nodes may lose a step any number of times', async () => {
    let begun = Promise.withResolvers<void>();
    let isOver = false;
    const run: RunTool = async (_, signal) => {
      if (isOver) return { output: 1 };
      begun.resolve();
      return never(signal);
    };
    const holder = async () =>
      (await world.platform.db.query<{ nodeId: string }>(sql`select node_id as "nodeId" from sessions`))[0]!.nodeId;
    for (let workers = 0; workers < 2; workers++) await world.work({ ask: callsPoison, run });
    const sessionId = await world.open(await world.agent([idempotent]));
    for (let takeovers = 0; takeovers < 4; takeovers++) {
      await begun.promise;
      begun = Promise.withResolvers<void>();
      // It may be between two nodes. If the call had ended in the meantime, none would hold it again.
      const before = await vi.waitUntil(holder, { timeout: 30_000 });
      isOver = takeovers === 3;
      // To the other nodes, this one is silent for longer than its lease.
      await expect
        .poll(async () => {
          await world.platform.db.execute(sql`
            update nodes set lease_expires_at = now() - interval '1 minute' where node_id = ${before}`);
          return holder();
        })
        .not.toBe(before);
      await expect.poll(crashesOf).toEqual([0]);
    }
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks).slice(-2)).toEqual(['turn.completed endTurn', 'idle']);
  });

  test('the turn of a message that follows a step with counted crashes runs', async () => {
    const sessionId = await world.open(await world.agent([]), { input: 'one' });
    await diesInModel();
    await sendMessage(world.ctx, { sessionId, content: 'two' });
    await world.work({ ask: answering([{ text: 'done' }]) });
    const chunks = await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 2);
    expect(outline(chunks).filter((word) => word === '"done"')).toHaveLength(2);
    expect(await crashesOf()).toEqual([0]);
  });

  test('calls that ran when the turn failed are reported as for any stopped turn', async () => {
    const sessionId = await world.open(await world.agent([idempotent, httpTool('effect')]));
    const ask = answering([
      {
        calls: [
          ['poison', {}],
          ['effect', {}],
        ],
      },
    ]);
    for (let times = 0; times < 3; times++) {
      const begun = Promise.withResolvers<void>();
      const run: RunTool = (call, signal) => {
        if (times > 0 || call.tool.name === 'effect') begun.resolve();
        return never(signal);
      };
      await dies({ ask, run }, begun.promise);
    }
    await world.work({});
    const words = outline(await world.until(sessionId, is('idle')));
    expect(words).toContain('tool.result unknown');
    expect(words.filter((word) => word.startsWith('tool.result'))).toHaveLength(2);
  });

  test('the end of a step resets the count, so a turn of many steps may survive many crashes', async () => {
    const ask = answering([...Array(4).fill({ calls: [['poison', {}]] }), { text: 'done' }]);
    const sessionId = await world.open(await world.agent([idempotent]));
    for (let step = 0; step < 4; step++) {
      for (let times = 0; times < 2; times++) {
        const begun = Promise.withResolvers<void>();
        let ran = 0;
        // The first call was left by the previous node; the next step's is the one that this node dies in.
        const endsOne = times === 0 && step > 0;
        const run: RunTool = async (_, signal) => {
          ran += 1;
          if (endsOne && ran === 1) return { output: 1 };
          begun.resolve();
          return never(signal);
        };
        await dies({ ask, run }, begun.promise);
      }
    }
    await world.work({ ask });
    expect(outline(await world.until(sessionId, is('idle'))).slice(-2)).toEqual(['turn.completed endTurn', 'idle']);
    expect(await crashesOf()).toEqual([0]);
  });

  test('a node that stops and releases its sessions does not count as a crash', async () => {
    const sessionId = await world.open(await world.agent([idempotent]));
    for (let times = 0; times < 5; times++) {
      const begun = Promise.withResolvers<void>();
      const worker = await world.work({ ask: callsPoison, run: beginsAndHangs(begun) });
      await begun.promise;
      await worker.stop();
    }
    expect(await crashesOf()).toEqual([0]);
    await world.work({ ask: callsPoison });
    await world.until(sessionId, is('idle'));
  });

  test('of sessions that two nodes died with, one runs at a time, so the third crash shows which one it was', async () => {
    const bystanders = 5;
    const poison = await world.open(await world.agent([idempotent]));
    const harmless = httpTool('poison', { idempotent: true, description: 'harmless' });
    const others = await Promise.all(
      Array.from({ length: bystanders }, async () => world.open(await world.agent([harmless]))),
    );
    for (let times = 0; times < 2; times++) {
      let running = 0;
      const begun = Promise.withResolvers<void>();
      const run: RunTool = (_, signal) => {
        running += 1;
        if (running === bystanders + 1) begun.resolve();
        return never(signal);
      };
      await dies({ ask: callsPoison, run }, begun.promise);
    }

    // The node that runs the poisonous session dies. Whatever the order, no other session runs at the same time.
    const poisoned = Promise.withResolvers<void>();
    let [running, most] = [0, 0];
    const run: RunTool = async ({ tool }, signal) => {
      running += 1;
      most = Math.max(most, running);
      if (tool.description !== 'harmless') {
        poisoned.resolve();
        return never(signal);
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      running -= 1;
      return { output: 1 };
    };
    await dies({ ask: callsPoison, run }, poisoned.promise);
    expect(most).toBe(1);
    await world.work({ ask: callsPoison });
    await world.until(poison, is('idle'));
    for (const sessionId of others) await world.until(sessionId, is('idle'));
  });
});

test('the turn of a tool call that kills every node that runs it fails, and the node that finds it survives', async () => {
  const service = await startTestService({
    config: { roles: new Set(['api']), masterKeys: [Buffer.from(MASTER_KEY, 'hex')] },
  });
  const db = createDb({ url: service.database.url, max: 2 });
  const script = await programFile('node');
  const start = async () => {
    const node = spawn(process.execPath, [script], {
      env: {
        ...process.env,
        DATABASE_URL: service.database.url,
        SIGNALBOX_MASTER_KEY: MASTER_KEY,
        SIGNALBOX_ROLES: 'runtime',
        SIGNALBOX_LOG_LEVEL: 'silent',
        SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const closed = once(node, 'close');
    await once(node.stdout, 'data');
    return { node, closed };
  };
  let running: Awaited<ReturnType<typeof start>> | undefined;
  let killed = 0;
  const server = createServer(() => {
    killed += 1;
    running?.node.kill('SIGKILL');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const tool = httpTool('poison', { idempotent: true });
    const agent = await service.client.agents.create({
      name: 'Poison',
      model: {
        provider: 'scripted',
        model: 'x',
        settings: { script: [{ toolCalls: [{ name: 'poison' }] }, { text: 'done' }] },
      },
      tools: [{ ...tool, request: { method: 'POST', url: `http://127.0.0.1:${port}/` } } as never],
    });
    const session = await service.client.sessions.open({
      agentId: agent.agentId,
      environment: 'production',
      input: 'go',
    });
    for (let times = 0; times < 3; times++) {
      running = await start();
      await running.closed;
      // Instead of waiting until it expires.
      await db.execute(sql`update nodes set lease_expires_at = now() - interval '1 minute'`);
    }
    running = await start();
    const errorNow = async () => (await service.client.sessions.get(session.sessionId)).error?.code;
    await expect.poll(errorNow).toBe('step_crashed');
    expect(killed).toBe(3);
    expect(running.node.exitCode).toBeNull();
    running.node.stdin!.end();
    await running.closed;
  } finally {
    server.closeAllConnections();
    server.close();
    await db.close();
    await service.stop();
  }
});
