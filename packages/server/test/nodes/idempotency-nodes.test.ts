// The same POST with one Idempotency-Key, sent twenty times to two nodes at once, has one effect and one response. (With kill -9:
// proofs/idempotency.test.ts.)
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createOnceWorld,
  kindsOfPost,
  type OnceAnswer,
  type OnceWorld,
  postOnce,
} from '../support/idempotent-posts.ts';
import { send } from '../support/raw.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const AT_ONCE = 20;

let nodes: TestService[];
let receiver: Receiver;
let world: OnceWorld;
beforeAll(async () => {
  const first = await startTestService();
  nodes = [first, await startTestService({ database: first.database })];
  receiver = await createReceiver();
  world = await createOnceWorld(first.client, receiver.url);
});
afterAll(async () => {
  for (const node of nodes.toReversed()) await node.stop();
  await receiver.close();
});

test.each(Object.entries(kindsOfPost))(
  '%s, sent twenty times at once to two nodes, happens once',
  async (kind, prepare) => {
    const { path, body, effects } = await prepare(world, `over two nodes: ${kind}`);
    const ask = { key: nodes[0]!.adminKey, idempotencyKey: `nodes ${kind}`, path, body };
    async function untilAnswered(index: number): Promise<OnceAnswer> {
      for (let turn = index; ; turn += 1) {
        const answer = await postOnce(nodes[turn % nodes.length]!.url, ask);
        if (answer) return answer;
      }
    }
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => untilAnswered(index)));

    const [first] = answers;
    expect(first!.status, first!.text).toBeLessThan(300);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 'different answers').toBe(1);
    expect(
      answers.filter(({ replayed }) => !replayed),
      'responses that are not a replay',
    ).toHaveLength(1);
    expect(await effects()).toBe(1);
    const { apiKey, signingSecret } = JSON.parse(first!.text);
    if (signingSecret) watchSecret(signingSecret);
    if (!apiKey) return;
    watchSecret(apiKey.secret);
    expect((await send(nodes[1]!.url, 'GET', '/me', { key: apiKey.secret })).status).toBe(200);
  },
);
