// Each scenario of the demo prints what it promises, whatever the decision, and leaves nothing behind.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createManualClock } from '../../packages/server/test/support/manual-clock.ts';
import { respond, startOpenAiServer } from '../../packages/server/test/support/openai-server.ts';
import { programFile } from '../../packages/server/test/support/programs.ts';
import { startTestService, type TestService, watchSecret } from '../../packages/server/test/support/service.ts';
import { type Running, runProgram } from '../run-program.ts';

const program = await programFile('demo');

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
  demo = runProgram(program, args, { TMPDIR: temporary, ...env });
  return demo;
};

describe('on its own service', () => {
  test('approved: the tool runs once, the session completes, and webhooks and event records are printed', async () => {
    const demo = run(['--yes']);
    expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
    for (const text of [
      /approval +requested for refund_order/,
      /approval +approved/,
      /tool +refund_order\(orderId: "1042", amount: 42\.5,/,
      /result +Refunded 42\.50 EUR, receipt rf_1042_1/,
      /status +completed/,
      /refunds +1 made by the shop: 42\.50 EUR/,
      /whd_\w+ +attempt 1 +turn_1:seq_1 +session\.status/,
      / approval\.resolved +by Demo +op_/,
      / session\.completed +by Refund desk +ses_/,
    ]) {
      expect(demo.printed).toMatch(text);
    }
    expect(await readdir(temporary)).toEqual([]);
  });

  test('approved at the terminal with another amount: one that the schema forbids is refused, one that it allows is used', async () => {
    const demo = run([]);
    await demo.until('Approve?');
    demo.process.stdin?.end('e\n-5\ne\n30\n');
    expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
    expect(demo.printed).toMatch(/requested for refund_order\(orderId: "1042", amount: 42\.5,/);
    expect(demo.printed).toMatch(/refused +.*\/amount must be > 0/);
    expect(demo.printed).toMatch(/tool +refund_order\(orderId: "1042", amount: 30,/);
    expect(demo.printed).toMatch(/refunds +1 made by the shop: 30\.00 EUR/);
    expect(await readdir(temporary)).toEqual([]);
  });

  test('denied at the terminal: no refund is made, the model gets the reason, and the session completes', async () => {
    const demo = run([]);
    await demo.until('Approve?');
    demo.process.stdin?.end('perhaps\nn\n');
    expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
    expect(demo.printed).toMatch(/approval +denied/);
    expect(demo.printed).toMatch(/said no\./);
    expect(demo.printed).toMatch(/refunds +0 made/);
    expect(demo.printed).not.toMatch(/tool +refund_order\(/);
    expect(await readdir(temporary)).toEqual([]);
  });

  test('stopped at the prompt: nothing is left behind', async () => {
    const demo = run([]);
    await demo.until('Approve?');
    demo.process.kill('SIGINT');
    expect(await demo.ended).toBe(130);
    expect(demo.printed).toContain('Stopped.');
    expect(await readdir(temporary)).toEqual([]);
  });
});

describe('on a running service, where everything it created is deleted again', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterEach(async () => {
    const { client } = service;
    expect(demo?.printed).not.toContain('could not be deleted');
    expect((await client.agents.list()).data).toEqual([]);
    expect((await client.sessions.list()).data).toEqual([]);
    expect((await client.webhookSubscriptions.list()).data).toEqual([]);
    expect((await client.keys.list()).data.map(({ name }) => name)).toEqual(['Test']);
    const environments = (await client.environments.list()).data.map(({ name }) => name);
    expect(environments.toSorted()).toEqual(['production', 'staging']);
  });
  const play = async (args: string[], env: Record<string, string> = {}) => {
    const demo = run(['--url', service.url, ...args], { SIGNALBOX_API_KEY: service.adminKey, ...env });
    expect([await demo.ended, demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
    return demo.printed;
  };

  test('the approval scenario runs on a real provider', async () => {
    const model = await startOpenAiServer();
    const input = { orderId: '1042', amount: 42.5, currency: 'EUR', reason: 'damaged' };
    model.next(
      respond({ text: ['I will ', 'refund it.'], toolCalls: [{ name: 'refund_order', arguments: input }] }),
      respond({ text: 'It is refunded.' }),
    );
    watchSecret('a-key-of-the-model');
    const printed = await play(['--yes', '--model', 'openai-compatible/any', '--base-url', model.url], {
      MODEL_API_KEY: 'a-key-of-the-model',
    });
    expect(printed).toContain('It is refunded.');
    expect(model.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill('Bearer a-key-of-the-model'),
    );
    await model.close();
  });

  test('tools: three calls of one step run in parallel, and the model gets the results in the order of its calls', async () => {
    const printed = await play(['--scenario', 'tools', '--yes']);
    // The shop answers none of them before all three have arrived. Run one after another, they would be counted one at a time.
    expect(printed).toMatch(/lookups +3 in parallel/);
    expect(printed).toMatch(/transcript +.*: 1042, 1043, 1044\n/);
    expect(printed).not.toMatch(/approval\b/);
  });

  test("client-tool: the program runs the call, and the session continues with the program's result", async () => {
    const printed = await play(['--scenario', 'client-tool', '--yes']);
    // The session waits in between, unless the program is faster.
    expect(printed).toMatch(/tool +count_stock\(article: "apples"\)\n(.*waiting.*\n)? +result +12\n/);
    expect(printed).toContain('We have 12 in stock.');
  });

  test("sub-agent: the approval is requested in the child, and the parent continues with the child's text", async () => {
    const printed = await play(['--scenario', 'sub-agent', '--amount', '20']);
    expect(printed).toMatch(/tool +refund_desk\(.*\n +status +waiting for the other agent\n/);
    expect(printed).toMatch(/│ +approval +requested for refund_order\(orderId: "1042", amount: 42\.5,/);
    expect(printed).toMatch(/│ +tool +refund_order\(orderId: "1042", amount: 20,/);
    expect(printed).toMatch(/│ +status +completed\n\n +result +.*20\.00 EUR/);
    expect(printed).toMatch(/children +1: ses_\w+ completed/);
    expect(printed).toMatch(/refunds +1 made by the shop: 20\.00 EUR/);
  });

  test('files: what is sent and what a tool returns are the same bytes when they are read again', async () => {
    const printed = await play(['--scenario', 'files', '--yes']);
    expect(printed).toMatch(/upload +parcel\.png: 70 of 70 bytes/);
    expect(printed).toMatch(/tool +write_report\(order: "1042"\)/);
    expect(printed).toMatch(/result +.*report\.csv/);
    expect(printed).toContain('The report is attached.');
    expect(printed.match(/the same bytes/g)).toHaveLength(2);
    expect(printed).not.toContain('OTHER BYTES');
  });

  test('long: older messages become a summary for the model, and the conversation continues with every message kept', async () => {
    const printed = await play(['--scenario', 'long', '--yes']);
    expect(printed).toMatch(
      /compacted +\d+ → \d+ tokens, up to turn \d\n +summary +.*The limit is 27 degrees\. Sensor B is broken/,
    );
    expect(printed).toMatch(/compacted.*customer +Which sensor.*Sensor B is broken, and the limit is 27 degrees\./s);
    expect(printed).toMatch(/status +completed\n/);
    expect(printed).toContain('9 of 9 messages of the customer are still in the session');
    expect(printed).not.toMatch(/turn +ended: (?!endTurn)/);
  });

  test("worker: the program's own loop requests approval through the service and gets the result", async () => {
    const approved = await play(['--scenario', 'worker', '--amount', '20']);
    expect(approved).toMatch(/approval +requested for refund_order\(orderId: "1042", amount: 42\.5\)/);
    expect(approved).toMatch(/All done\. Refunded 20\.00 EUR/);
    expect(approved).toMatch(/refunds +1 made by the shop: 20\.00 EUR/);

    const denied = await play(['--scenario', 'worker', '--no']);
    expect(denied).toMatch(/I was not allowed to refund it\./);
    expect(denied).toMatch(/refunds +0 made/);
  });
});

test('outage: the session waits for its models, continues by itself, and its fallback responds', async () => {
  // A webhook's signature is valid for minutes.
  const clock = createManualClock(new Date());
  const service = await startTestService({ clock });
  const demo = run(['--scenario', 'outage', '--url', service.url], { SIGNALBOX_API_KEY: service.adminKey });
  expect([await clock.passWhile(demo.ended), demo.printed]).toEqual([0, expect.stringContaining('Done.')]);
  expect(demo.printed).toMatch(/status +waiting for the model \(.*unavailable.*\), which is called again at \d{4}-/);
  expect(demo.printed).toMatch(/status +running\n/);
  expect(demo.printed).toContain('We are open until six today.');
  expect(demo.printed).toMatch(/timeline +scripted\/fallback succeeded/);
  await service.stop();
});

describe('an invalid command line is explained, and nothing is started', () => {
  test('--url without a key', async () => {
    const demo = run(['--url', 'http://127.0.0.1:1']);
    expect(await demo.ended).toBe(2);
    expect(demo.printed).toBe('\ndemo: --url: set SIGNALBOX_API_KEY to an admin key of that service\n');
  });

  test.each([['--scenario'], ['--scenario', '--yes'], ['--scenario', 'nonsense']])('%s %s', async (...args) => {
    const demo = run(args);
    expect(await demo.ended).toBe(2);
    expect(demo.printed).toMatch(
      /must be one of\n\n +approval .*\n +tools .*\n +client-tool .*\n +sub-agent .*\n +worker /,
    );
  });
});
