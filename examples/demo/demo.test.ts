// The demo shows the main job, whatever the person decides, and leaves nothing behind.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answer, startOpenAiServer } from '../../packages/server/test/support/openai-server.ts';
import { startTestService, watchSecret } from '../../packages/server/test/support/service.ts';
import { type Running, runProgram } from '../run-program.ts';

let temporary: string;
let demo: Running | undefined;
beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'demo-'));
});
afterEach(async () => {
  demo?.process.kill('SIGKILL');
  await rm(temporary, { recursive: true });
});

const run = (args: string[], env: Record<string, string> = {}): Running => {
  demo = runProgram('demo/main.ts', args, { TMPDIR: temporary, ...env });
  return demo;
};

test('approved: the tool runs once, the Session completes, webhooks and records are shown', async () => {
  const demo = run(['--yes']);
  expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
  for (const text of [
    /approval +asked for refund_order/,
    /approval +approved/,
    /result +refundId: "rf_1042_1"/,
    /status +completed/,
    /refunds +1 made/,
    /whd_\w+ +attempt 1 +turn_1:seq_1 +session\.status/,
    / approval\.resolved +by Demo +op_/,
    / session\.completed +by Refund desk +ses_/,
  ]) {
    expect(demo.printed).toMatch(text);
  }
  expect(await readdir(temporary)).toEqual([]);
});

test('denied at the terminal: no refund is made, the model hears why, and the Session completes', async () => {
  const demo = run([]);
  await demo.until('Shall it run?');
  demo.process.stdin?.end('perhaps\nn\n');
  expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
  expect(demo.printed).toMatch(/approval +denied/);
  expect(demo.printed).toMatch(/said no\./);
  expect(demo.printed).toMatch(/refunds +0 made/);
  expect(demo.printed).not.toMatch(/tool +refund_order\(/);
  expect(await readdir(temporary)).toEqual([]);
});

test('stopped while it asks: nothing of it stays', async () => {
  const demo = run([]);
  await demo.until('Shall it run?');
  demo.process.kill('SIGINT');
  expect(await demo.ended).toBe(130);
  expect(demo.printed).toContain('Stopped.');
  expect(await readdir(temporary)).toEqual([]);
});

test('on a model over the wire and a service that runs already, whose things it takes away again', async () => {
  const service = await startTestService();
  const model = await startOpenAiServer();
  const input = { orderId: '1042', amount: 42.5, currency: 'EUR', reason: 'damaged' };
  model.next(
    answer({ text: ['I will ', 'refund it.'], toolCalls: [{ name: 'refund_order', arguments: input }] }),
    answer({ text: 'It is refunded.' }),
  );
  watchSecret('a-key-of-the-model');
  const demo = run(['--yes', '--url', service.url, '--model', 'openai-compatible/any', '--base-url', model.url], {
    SIGNALBOX_API_KEY: service.adminKey,
    MODEL_API_KEY: 'a-key-of-the-model',
  });
  expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('It is refunded.')]);
  expect(model.requests.map(({ headers }) => headers.authorization)).toEqual(
    Array(2).fill('Bearer a-key-of-the-model'),
  );
  expect(demo.printed).not.toContain('could not be taken away');
  const { client } = service;
  expect((await client.agents.list()).data).toEqual([]);
  expect((await client.sessions.list()).data).toEqual([]);
  expect((await client.webhookSubscriptions.list()).data).toEqual([]);
  expect((await client.keys.list()).data.map(({ name }) => name)).toEqual(['Test']);
  expect((await client.environments.list()).data.map(({ name }) => name).toSorted()).toEqual(['production', 'staging']);
  await model.close();
});

test('called wrongly, it says how and starts nothing', async () => {
  const demo = run(['--url', 'http://127.0.0.1:1']);
  expect(await demo.ended).toBe(2);
  expect(demo.printed).toBe('\ndemo: --url needs an admin key of that service in SIGNALBOX_API_KEY\n');
});
