// Clients repeat a POST with one Idempotency-Key until they get a response, while nodes are killed or the responses to their commits
// are lost: each has its effect once, and every client gets the same response, to the byte. (P1)
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  createOnceWorld,
  kindsOfPost,
  type OnceAnswer,
  type OncePost,
  type OnceWorld,
  postOnce,
} from '../packages/server/test/support/idempotent-posts.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../packages/server/test/support/postgres-proxy.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { createReceiver, type Receiver } from '../packages/server/test/support/receiver.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const NODES = 2;
const TIMES_AT_ONCE = 3;
/** Concurrent POSTs, each sent by several clients. */
const LANES = 4;
// Most responses to commits are lost.
const UNHEARD = 0.7;
const MAX_POSTS_OF_A_KIND = 50;

const { seed } = faults;
const random = createRandom(seed);
const kinds = Object.entries(kindsOfPost);
let database: TestDatabase;
let proxy: PostgresProxy;
let nodes: Nodes;
let receiver: Receiver;
let world: OnceWorld;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startPostgresProxy(database.url);
  nodes = await startNodes(NODES, proxy.url);
  receiver = await createReceiver();
  world = await createOnceWorld(nodes.clients[0]!, receiver.url);
}, 180_000);
afterEach(() => {
  proxy.losesResponse = () => false;
});
afterAll(async () => {
  await nodes?.end();
  await receiver?.close();
  await proxy?.close();
  await database.drop();
});

/** The received tests of the subscription, which belong to no session. */
const testsSent = () => receiver.received.filter(({ envelope }) => envelope.sessionId === 'ses_test').length;

interface Posted {
  kind: string;
  idempotencyKey: string;
  post: OncePost;
  answers: OnceAnswer[];
}

test(`a POST that is repeated until it succeeds has its effect once, and one response, whichever node is killed (seed ${seed})`, {
  timeout: 240_000 + faults.times * 15_000,
}, async () => {
  const { apiKey } = nodes;
  let answered = 0;
  let onAnswered = () => {};
  let kills = 0;

  async function untilAnswered(idempotencyKey: string, { path, body }: OncePost): Promise<OnceAnswer> {
    for (let turn = random.below(NODES); ; turn += 1) {
      const answer = await postOnce(nodes.urls[turn % NODES]!, { key: apiKey, idempotencyKey, path, body });
      if (!answer) continue;
      answered += 1;
      onAnswered();
      return answer;
    }
  }

  async function makePosts(lane: number): Promise<Posted[]> {
    const all: Posted[] = [];
    // Each kind at least once, and more until all nodes have been killed as often as planned.
    for (let round = 0; round < kinds.length / LANES || kills < faults.times; round += 1) {
      const [kind, prepare] = kinds[(round * LANES + lane) % kinds.length]!;
      const idempotencyKey = `${lane}-${round}`;
      const post = await prepare(world, `post ${idempotencyKey}`);
      const asked = Array.from({ length: TIMES_AT_ONCE }, () => untilAnswered(idempotencyKey, post));
      all.push({ kind, idempotencyKey, post, answers: await Promise.all(asked) });
    }
    return all;
  }

  /** A route whose effect is outside the database acts at most once: after a crash its outcome is unknown, and it is not repeated. */
  async function makeTests(): Promise<{ made: number; answered: number }> {
    const path = '/webhook_subscriptions/production/test';
    let made = 0;
    let answeredTests = 0;
    for (; made === 0 || kills < faults.times; made += 1) {
      const ask = () =>
        postOnce(nodes.urls[random.below(NODES)]!, { key: apiKey, idempotencyKey: `test ${made}`, path });
      const answers = (await Promise.all([ask(), ask(), ask()]))
        .concat(await ask())
        .filter((answer) => answer !== undefined);
      expect(new Set(answers.map(({ text }) => text)).size).toBeLessThanOrEqual(1);
      if (answers.length > 0) answeredTests += 1;
    }
    return { made, answered: answeredTests };
  }

  async function killNodes(): Promise<void> {
    for (; kills < faults.times; kills += 1) {
      // Some responses later, at any point of the work.
      const at = answered + 5 + random.below(20);
      await new Promise<void>((resolve) => {
        onAnswered = () => {
          if (answered >= at) resolve();
        };
      });
      await nodes.kill(random.below(NODES));
    }
  }

  const lanes = Promise.all(Array.from({ length: LANES }, (_, lane) => makePosts(lane)));
  const [posted, tests] = await Promise.all([lanes.then((each) => each.flat()), makeTests(), killNodes()]);

  for (const { kind, idempotencyKey, post, answers } of posted) {
    const what = `${kind}, ${idempotencyKey}`;
    const again = await Promise.all(nodes.urls.map(() => untilAnswered(idempotencyKey, post)));
    const texts = [...answers, ...again].map(({ status, text }) => `${status} ${text}`);
    expect(answers[0]!.status, `${what}: ${answers[0]!.text}`).toBeLessThan(300);
    expect(new Set(texts).size, `answers of ${what}`).toBe(1);
    // `recover` and `rotate_secret` act on the one subscription, which others change as well.
    if (!sharesItsCount.has(kind)) expect(await post.effects(), `effects of ${what}`).toBe(1);
  }
  expect(testsSent(), 'tests sent').toBeLessThanOrEqual(tests.made);
  expect(testsSent(), 'tests sent').toBeGreaterThanOrEqual(tests.answered);
  for (const kind of sharesItsCount) {
    const same = posted.filter((one) => one.kind === kind);
    const counts = await Promise.all(same.map(({ post }) => post.effects()));
    expect(Math.max(...counts), `effects of ${kind}`).toBe(same.length);
  }
});

const sharesItsCount = new Set(['recover deliveries', 'rotate a signing secret']);

test(`a POST whose commit was not acknowledged gets its response when it is repeated, and has its effect once (seed ${seed})`, {
  timeout: 240_000,
}, async () => {
  // Commits of POSTs, alone and in groups, and of the journal.
  const isCommit = (tags: readonly string[]) => tags.at(-1) === 'COMMIT';
  for (const [kind, prepare] of kinds) {
    let wasUnheard = false;
    for (let count = 0; count < MAX_POSTS_OF_A_KIND && !wasUnheard; count += 1) {
      const idempotencyKey = `unheard ${kind} ${count}`;
      const { path, body, effects } = await prepare(world, idempotencyKey);
      const ask = () => postOnce(random.pick(nodes.urls), { key: nodes.apiKey, idempotencyKey, path, body });
      proxy.losesResponse = (tags) => isCommit(tags) && random.chance(UNHEARD);
      let answer = await ask();
      while (!answer) answer = await ask();
      proxy.losesResponse = () => false;
      // The first response is the stored one.
      wasUnheard = answer.replayed;
      expect(answer.status, `${kind}: ${answer.text}`).toBeLessThan(300);
      expect(await effects(), `effects of ${idempotencyKey}`).toBe(1);
    }
    expect(wasUnheard, `${kind} was done and not heard of`).toBe(true);
  }
});
